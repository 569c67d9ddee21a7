"""Reads of many: keys by a pattern, documents of which some may be unreadable, entries of streams and their groups."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import structlog
from msgspec import Struct

from edge.store.client import Store
from edge.store.connection import GroupExists

_AT_A_TIME = 1000


async def scan_keys(store: Store, pattern: str) -> AsyncIterator[list[str]]:
    """Yield the keys that match a pattern of Redis, batch by batch.

    A key that exists throughout is among them and may come twice. Raises Unavailable when the store is unavailable.
    """
    cursor = "0"
    while True:
        cursor, found = await store.execute("SCAN", cursor, "MATCH", pattern, "COUNT", _AT_A_TIME)
        if found:
            yield found
        if str(cursor) == "0":
            return


def escape_pattern(text: str) -> str:
    """Escape the special characters of a pattern of Redis, so that it matches just this text."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)


logger = structlog.get_logger(__name__)

_Read = TypeVar("_Read")


async def load_readable(store: Store, keys: Sequence[str], read: Callable[[Mapping[str, str]], _Read]) -> list[_Read]:
    """Read the documents at some keys; a missing one is left out, an unreadable one is logged and left out."""
    found = await store.read([("HGETALL", key) for key in keys])
    documents = []
    for key, stored in zip(keys, found, strict=True):
        try:
            # A document that was removed in between is left out.
            documents += [read(stored)] if stored else []
        except Exception:
            # One unreadable document must not hide the others.
            logger.exception("document cannot be read", key=key)
    return documents


async def load_scopes(store: Store) -> set[str]:
    """Return the scopes that ever held a job, or that a gateway ever worked on."""
    work = store.keys.sfc_work("")
    worked_on = {key.removeprefix(work) async for batch in scan_keys(store, f"{work}*") for key in batch}
    held: set[str] = await store.execute("SMEMBERS", store.keys.active_scopes())
    return worked_on | held


BEGINNING = "0-0"
"""The position before every entry."""
_POSITION = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_LARGEST = (1 << 64) - 1
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


async def reachable(store: Store, key: str, position: str) -> str:
    """Return a stored position, or that of the newest entry where the position is beyond it: `0-0` without entries.

    A position that is ahead of its stream would skip entries to come. Raises Unavailable, and ValueError for a position
    that is none.
    """
    newest = list(entries(await store.execute("XREVRANGE", key, "+", "-", "COUNT", 1)))
    last = newest[0].entry_id if newest else BEGINNING
    return last if position_key(position) > position_key(last) else position


def position_key(position: str) -> tuple[int, int]:
    """Return the sort key of a stream position.

    Raises ValueError for a text that Redis does not accept as a position.
    """
    # `int` accepts more than Redis: blanks, signs, digits of other scripts, numbers of any size.
    match = _POSITION.fullmatch(position)
    order = (int(match[1]), int(match[2])) if match else None
    if order is None or max(order) > _LARGEST:
        raise ValueError(f"{position!r} is not a position of a stream")
    return order


class StreamPage(Struct, Generic[_T], frozen=True):
    """A part of a stream: what could be read of it, and the position after which it continues; empty at the end."""

    items: Sequence[_T]
    next: str


def page_of(reply: Sequence[Any], count: int, read: Callable[[Entry], _T | None]) -> StreamPage[_T]:
    """Return the page of a reply to XRANGE or XREVRANGE with a COUNT; an entry that cannot be read is left out."""
    found = tuple(entries(reply))
    items = tuple(item for entry in found if (item := read(entry)) is not None)
    return StreamPage(items, found[-1].entry_id if len(found) == count else "")


async def create_group(store: Store, key: str, group: str) -> None:
    """Create a consumer group where it is missing; it begins at the oldest entry. Another gateway may be faster."""
    groups = await store.execute("XINFO GROUPS", key) if await store.execute("EXISTS", key) else ()
    if group in {value["name"] for value in groups}:
        return
    try:
        await store.execute("XGROUP CREATE", key, group, "0", "MKSTREAM")
    except GroupExists:
        return
