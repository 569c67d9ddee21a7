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
from edge.foundation.text import ENGLISH
from edge.model.recipe import parse_recipe
from edge.sfc.compiler import RejectedRecipe, compile_recipe

_NICE: Final = 10


class CheckRequest(Struct, frozen=True):
    """A recipe to check, and the steps to mark as active."""

    recipe: Any
    active: tuple[str, ...] = ()
    language: str = ENGLISH


def check_recipe(data: Any, active: Sequence[str], language: str = ENGLISH) -> RecipeResult:
    """Return the faults of a recipe, and its chart with marks at the active steps, else at the faulty ones."""
    net = compile_recipe(data, checks=recipe_checks())
    if isinstance(net, RejectedRecipe):
        recipe = parse_recipe(data)[0]
        faults = tuple(text.in_language(language) for text in net.texts)
        return RecipeResult(faults=faults, warnings=(), chart=draft_svg(recipe, net.faults, active) if recipe else "")
    warnings = tuple(text.in_language(language) for text in net.warning_texts)
    return RecipeResult(faults=(), warnings=warnings, chart=draft_svg(net.recipe, (), active))


def answer(request: bytes) -> bytes:
    """Return the result of a request, both encoded."""
    asked = msgspec.json.decode(request, type=CheckRequest)
    return msgspec.json.encode(check_recipe(asked.recipe, asked.active, asked.language))


if __name__ == "__main__":
    os.nice(_NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer, answer)
