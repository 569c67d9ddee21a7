"""States what holds texts in English, to compare it with what a reader sees."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from edge.foundation.text import Text


def english(value: Any) -> Any:
    """Return a value whose texts, also those within it, are strings in English."""
    match value:
        case Text():
            return str(value)
        case Struct():
            return replace(value, **english(asdict(value)))
        case dict():
            return {key: english(inner) for key, inner in value.items()}
        case list() | tuple():
            return type(value)(map(english, value))
        case _:
            return value
