"""Entries of a stream, in the shapes of RESP2 and RESP3."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

_T = TypeVar("_T")


class Entry(Struct, frozen=True):
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


class StreamPage(Struct, Generic[_T], frozen=True):
    """A part of a stream: what could be read of it, and the position after which it goes on; empty at the end."""

    items: Sequence[_T]
    next: str


def page_of(reply: Sequence[Any], count: int, read: Callable[[Entry], _T | None]) -> StreamPage[_T]:
    """Return the page of a reply to XRANGE or XREVRANGE with a COUNT; an entry that cannot be read is left out."""
    found = tuple(entries(reply))
    items = tuple(item for each in found if (item := read(each)) is not None)
    return StreamPage(items, found[-1].entry_id if len(found) == count else "")
