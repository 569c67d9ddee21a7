"""Checks what the code of a site returns from a node: it may be anything."""

import json
from typing import Any, Final

import msgspec

from edge.features.flows.nodes.kind import NodeError, Output, Withheld
from edge.foundation.text import Text

LARGEST_OUTPUT: Final = 1 << 20
"""In bytes of JSON."""
LARGEST_MEMORY: Final = 1 << 16
"""In bytes of JSON; what a node remembers is written in every cycle."""


def checked_output(returned: Any) -> Output:
    """Return an output whose value and memory are plain JSON; raises NodeError for anything else."""
    if not isinstance(returned, Output) or not isinstance(returned.withheld, Withheld | None):
        raise NodeError(
            Text.of("the node returned {type}, or an unknown withheld; expected Output", type=type(returned).__name__)
        )
    value = _plain(returned.value, Text.of("the output"), LARGEST_OUTPUT)
    return msgspec.structs.replace(
        returned, value=value, memory=_plain(returned.memory, Text.of("the memory"), LARGEST_MEMORY)
    )


def reason_of(error: BaseException) -> str:
    """Return the text of an error; the type alone when even its text fails."""
    try:
        return str(error) if isinstance(error, NodeError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the text of an error is code of the node, too
        return type(error).__name__


def _plain(value: Any, name: Text, most: int) -> Any:
    """Return a value that is JSON; raises NodeError for anything else: huge, cyclic, NaN, or of another type."""
    parts, size = [], 0
    try:
        for part in json.JSONEncoder(allow_nan=False, ensure_ascii=False).iterencode(value):
            size += len(part.encode())
            parts.append(part)
            if size > most:
                raise NodeError(Text.of("{member} has more than {most} bytes of JSON", member=name, most=most))
        found = json.loads("".join(parts))
        # The store takes no number of more than 64 bits.
        msgspec.json.encode(found)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NodeError(Text.of("{member} is not JSON: {reason}", member=name, reason=error)) from None
    return found
