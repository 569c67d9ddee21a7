"""The process that examines recipes: `python -m edge.features.recipes.examiner`.

It reads a list of recipes from standard input, writes a result for each, and has a low priority.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from edge.app.features import result_members
from edge.features.recipes.check import check_net
from edge.features.recipes.examination import ExaminedRecipe
from edge.features.recipes.finding import FindingLevel
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net

_NICE: Final = 10


def examine(recipe: object) -> ExaminedRecipe:
    """Return what is found in a recipe (decoded JSON); nothing in one that is refused at load."""
    net = compile_recipe(recipe)
    if not isinstance(net, Net):
        return ExaminedRecipe()
    texts: dict[FindingLevel, list[str]] = {level: [] for level in FindingLevel}
    findings = check_net(net, result_members()).findings
    for item in findings:
        texts[item.level].append(f"{item.level}: {item.message} ({item.kind})")
    messages = tuple(item.message for item in findings if item.level is not FindingLevel.INFORMATION)
    return ExaminedRecipe(tuple(texts[FindingLevel.FAULT]), tuple(texts[FindingLevel.WARNING]), messages)


def faults_and_warnings(recipe: object) -> tuple[Sequence[str], Sequence[str]]:
    """Return what is found in a recipe (decoded JSON), for checks of files: sentences without their levels."""
    result = examine(recipe)
    return [_without_level(text) for text in result.faults], [_without_level(text) for text in result.warnings]


def _without_level(text: str) -> str:
    return text.partition(": ")[2]


if __name__ == "__main__":
    os.nice(_NICE)
    sys.stdout.buffer.write(
        msgspec.json.encode([examine(item) for item in msgspec.json.decode(sys.stdin.buffer.read())])
    )
