"""Draws a recipe that may have faults: references to nothing are left out, and its faulty steps are marked."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.drawing.marks import Marks, StepMark
from edge.drawing.reading import read_chart
from edge.drawing.shapes import ChartTarget, Drawing, Shape, TargetKind
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.model.recipe import Recipe
from edge.sfc.check import shape_faults

_MOST_MARKED: Final = 100
"""Faults whose steps are marked; each is looked for in every step."""
_FAULTY: Final = StepMark(active=False, elapsed_ms=0, count=0, fault=True)


def draft_svg(recipe: Recipe, faults: Sequence[str], active: Collection[str] = ()) -> str:
    """Return the chart with marks at the active steps, else at those that faults name; empty when it has none."""
    steps = [step.name for step in recipe.steps]
    step_marks = {step: StepMark(active=True, elapsed_ms=0, count=1) for step in steps if step in active}
    step_marks |= {step: _FAULTY for step in steps if _is_named(step, faults[:_MOST_MARKED])}
    drawing = draft_drawing(recipe, faults, Marks("", step_marks, {}, ()) if step_marks else None)
    return chart_svg(drawing) if drawing else ""


def draft_drawing(recipe: Recipe, faults: Sequence[str], marks: Marks | None = None) -> Drawing | None:
    """Return the chart of a recipe with these faults, None where it cannot be drawn.

    Its elements are numbered as in the recipe.
    """
    candidates = (_Drawable(recipe), *_without_faults(recipe))
    drawable = next((candidate for candidate in candidates if _has_shape(candidate.recipe)), None)
    if drawable is None:
        return None
    try:
        return drawable.numbered(draw(read_chart(drawable.recipe), "", marks))
    except Exception:
        # A faulty recipe may be one that cannot be drawn: its faults are the answer then.
        if not faults:
            raise
        return None


class _Drawable(Struct, frozen=True):
    """A recipe to draw, and the numbers that its transitions and actions had before some were left out."""

    recipe: Recipe
    transitions: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()

    def numbered(self, drawing: Drawing) -> Drawing:
        """Return the drawing with the numbers of before."""
        if not self.transitions and not self.actions:
            return drawing
        return replace(drawing, shapes=tuple(map(self._numbered, drawing.shapes)))

    def _numbered(self, shape: Shape) -> Shape:
        match shape:
            case ChartTarget(kind=TargetKind.TRANSITION, key=key):
                return replace(shape, key=",".join(str(self.transitions[int(number)]) for number in key.split(",")))
            case ChartTarget(kind=TargetKind.ACTION, key=key):
                return replace(shape, key=str(self.actions[int(key)]))
            case _:
                return shape


def _has_shape(recipe: Recipe) -> bool:
    """Return whether a recipe can be drawn: branches that contain themselves have no end, for example."""
    return sum(step.initial for step in recipe.steps) == 1 and not shape_faults(recipe)


def _without_faults(recipe: Recipe) -> Iterator[_Drawable]:
    """Yield a recipe without its references to nothing, and without all that joins its steps."""
    steps = {step.name: step for step in recipe.steps}
    names = steps.keys() | {branch.name for branch in recipe.branches}
    joined = {
        number: transition
        for number, transition in enumerate(recipe.transitions)
        if {transition.source, transition.target} <= names
    }
    actions = {number: action for number, action in enumerate(recipe.actions) if action.step in steps}
    yield _Drawable(
        replace(
            recipe, steps=tuple(steps.values()), transitions=tuple(joined.values()), actions=tuple(actions.values())
        ),
        tuple(joined),
        tuple(actions),
    )
    apart = tuple(replace(step, initial=number == 0) for number, step in enumerate(steps.values()))
    loose = replace(recipe, steps=apart, transitions=(), actions=tuple(actions.values()), branches=())
    yield _Drawable(loose, (), tuple(actions))


def _is_named(step: str, faults: Sequence[str]) -> bool:
    texts = [fault for fault in faults if step in fault]
    return bool(texts) and any(map(re.compile(rf"(?<!\w){re.escape(step)}(?!\w)").search, texts))
