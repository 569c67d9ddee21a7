"""Checks and draws recipes; as a program for a gateway, whose jobs a long check must not slow.

`python -m edge.features.page.recipe_check` reads requests from standard input and writes
a result for each to standard output.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.app.features import recipe_checks
from edge.drawing.marks import Marks, StepMark
from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.features.page.recipe_models import RecipeResult
from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.check import shape_faults
from edge.sfc.compiler import RejectedRecipe, compile_recipe

LENGTH_BYTES: Final = 4
"""Each request and each result begins with its length, most significant byte first."""
_MOST_MARKED: Final = 100
"""Faults whose steps are marked; each is looked for in every step."""
_FAULTY: Final = StepMark(active=False, elapsed_ms=0, count=0, fault=True)
_NICE: Final = 10


class CheckRequest(Struct, frozen=True):
    """A recipe to check, and the steps to mark as active."""

    recipe: Any
    active: tuple[str, ...] = ()


def check_recipe(data: Any, active: Sequence[str]) -> RecipeResult:
    """Return the faults of a recipe, and its chart with marks at the active steps, else at the faulty ones."""
    net = compile_recipe(data, checks=recipe_checks())
    faults = net.faults if isinstance(net, RejectedRecipe) else ()
    warnings = () if isinstance(net, RejectedRecipe) else net.warnings
    recipe = parse_recipe(data)[0] if isinstance(net, RejectedRecipe) else net.recipe
    return RecipeResult(faults=faults, warnings=warnings, chart=_chart(recipe, faults, active) if recipe else "")


def _chart(recipe: Recipe, faults: Sequence[str], active: Sequence[str]) -> str:
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


def serve(requests: BinaryIO, results: BinaryIO) -> None:
    """Answer each request until there are no more."""
    while len(head := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        request = msgspec.json.decode(requests.read(int.from_bytes(head, "big")), type=CheckRequest)
        result = msgspec.json.encode(check_recipe(request.recipe, request.active))
        results.write(len(result).to_bytes(LENGTH_BYTES, "big") + result)
        results.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer)
