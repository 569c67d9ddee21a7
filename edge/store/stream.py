"""Entries of a stream, in whichever shape the server gives them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its id, which orders it, and its fields."""

    entry_id: str
    fields: dict[str, str]


def entries(raw: Iterable[tuple[str, list[str] | dict[str, str] | None]]) -> Iterator[Entry]:
    """Read entries as RESP2 and RESP3 give them: fields flat, as a mapping, or gone since they were taken."""
    for entry_id, fields in raw:
        if isinstance(fields, dict):
            yield Entry(entry_id, fields)
        else:
            flat = fields or ()
            yield Entry(entry_id, dict(zip(flat[::2], flat[1::2], strict=True)))
