"""Draws a recipe that may have faults: references to nothing are left out, and its faulty steps are marked."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from edge.drawing.marks import Marks, StepMark
from edge.drawing.reading import read_chart
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
    marks = Marks("", step_marks, {}, ()) if step_marks else None
    drawable = next((candidate for candidate in (recipe, *_without_faults(recipe)) if _has_shape(candidate)), None)
    if drawable is None:
        return ""
    try:
        return chart_svg(draw(read_chart(drawable), "", marks))
    except Exception:
        # A faulty recipe may be one that cannot be drawn: its faults are the answer then.
        if not faults:
            raise
        return ""


def _has_shape(recipe: Recipe) -> bool:
    """Return whether a recipe can be drawn: branches that contain themselves have no end, for example."""
    return sum(step.initial for step in recipe.steps) == 1 and not shape_faults(recipe)


def _without_faults(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a recipe without its references to nothing, and without all that joins its steps."""
    steps = {step.name: step for step in recipe.steps}
    names = steps.keys() | {branch.name for branch in recipe.branches}
    joined = tuple(transition for transition in recipe.transitions if {transition.source, transition.target} <= names)
    actions = tuple(action for action in recipe.actions if action.step in steps)
    yield replace(recipe, steps=tuple(steps.values()), transitions=joined, actions=actions)
    apart = tuple(replace(step, initial=number == 0) for number, step in enumerate(steps.values()))
    yield replace(recipe, steps=apart, transitions=(), actions=actions, branches=())


def _is_named(step: str, faults: Sequence[str]) -> bool:
    texts = [fault for fault in faults if step in fault]
    return bool(texts) and any(map(re.compile(rf"(?<!\w){re.escape(step)}(?!\w)").search, texts))
