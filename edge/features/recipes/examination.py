"""Examines stored recipes in a process of its own with low priority, so that no examination slows a job.

That process alone loads the check; the gateway stays small.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.foundation.errors import LocalFault
from edge.foundation.text import Text

_WITHIN_S: Final = 120.0
_ADVICE: Final = "Check it in a terminal: edge check recipe"


class ExaminedRecipe(Struct, frozen=True):
    """The faults and warnings of a recipe, as sentences in English; `messages` are both as texts for the page."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    messages: tuple[Text, ...] = ()


async def examine_apart(recipes: Sequence[Any]) -> list[ExaminedRecipe]:
    """Return what is found in each recipe; raises LocalFault when the process fails or takes too long."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge.features.recipes.examiner"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            results, _ = await process.communicate(msgspec.json.encode(recipes))
        return msgspec.json.decode(results, type=list[ExaminedRecipe])
    except TimeoutError:
        message = Text.of("the check of the recipe took more than {within_s:g} s", within_s=_WITHIN_S)
        raise LocalFault(message, _ADVICE) from None
    except (msgspec.DecodeError, RuntimeError) as error:
        # The latter is what uvloop raises where the process has ended before it got its input.
        raise LocalFault("the process that checks recipes has ended", _ADVICE) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
