"""Checks and draws recipes; as a program for a gateway, whose jobs a long check must not slow.

`python -m edge.features.page.recipe_check` reads requests from standard input and writes
a result for each to standard output.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.app.features import recipe_checks
from edge.app.recipe_process import serve
from edge.drawing.draft_chart import draft_svg
from edge.features.page.recipe_models import RecipeResult
from edge.model.recipe import parse_recipe
from edge.sfc.compiler import RejectedRecipe, compile_recipe

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
    return RecipeResult(faults=faults, warnings=warnings, chart=draft_svg(recipe, faults, active) if recipe else "")


def answer(request: bytes) -> bytes:
    """Return the result of a request, both encoded."""
    asked = msgspec.json.decode(request, type=CheckRequest)
    return msgspec.json.encode(check_recipe(asked.recipe, asked.active))


if __name__ == "__main__":
    os.nice(_NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer, answer)
