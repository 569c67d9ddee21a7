"""Entries of a stream, in the shapes of RESP2 and RESP3."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its id, which orders it, and its fields."""

    entry_id: str
    fields: dict[str, str]


def entries(raw: Iterable[tuple[str, list[str] | dict[str, str] | None]]) -> Iterator[Entry]:
    """Read entries of RESP2 and RESP3: fields as a list, as a mapping, or deleted since."""
    for entry_id, fields in raw:
        if isinstance(fields, dict):
            yield Entry(entry_id, fields)
        else:
            flat = fields or ()
            yield Entry(entry_id, dict(zip(flat[::2], flat[1::2], strict=True)))
