"""Examines stored recipes in a process of its own with low priority, so that no examination slows a job.

`python -m edge.features.recipes.examination` reads a list of recipes from standard input and writes a result for each.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.app.features import result_members
from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingLevel
from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net

_NICE: Final = 10
_WITHIN_S: Final = 120.0
_ADVICE: Final = "Check it in a terminal: edge check recipe"


class ExaminedRecipe(Struct, frozen=True):
    """The faults and warnings of a recipe, as sentences in English."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def examine(recipe: object) -> ExaminedRecipe:
    """Return what is found in a recipe (decoded JSON); nothing in one that is refused at load."""
    net = compile_recipe(recipe)
    if not isinstance(net, Net):
        return ExaminedRecipe()
    texts: dict[FindingLevel, list[str]] = {level: [] for level in FindingLevel}
    for item in check_net(net, result_members()).findings:
        texts[item.level].append(f"{item.level}: {item.message} ({item.kind})")
    return ExaminedRecipe(tuple(texts[FindingLevel.FAULT]), tuple(texts[FindingLevel.WARNING]))


async def examine_apart(recipes: Sequence[Any]) -> list[ExaminedRecipe]:
    """Return what is found in each recipe; raises Unavailable when the process fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge.features.recipes.examination"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            results, _ = await process.communicate(msgspec.json.encode(recipes))
        return msgspec.json.decode(results, type=list[ExaminedRecipe])
    except TimeoutError:
        message = Text.of("the check of the recipe took more than {within_s:g} s", within_s=_WITHIN_S)
        raise Unavailable(message, _ADVICE) from None
    except msgspec.DecodeError as error:
        raise Unavailable("the process that checks recipes has ended", _ADVICE) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    os.nice(_NICE)
    sys.stdout.buffer.write(
        msgspec.json.encode([examine(item) for item in msgspec.json.decode(sys.stdin.buffer.read())])
    )
