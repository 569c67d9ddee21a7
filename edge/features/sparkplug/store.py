"""What the edge node of Sparkplug keeps over restarts: the number of its last connection, and what it has published."""

from typing import Final

from msgspec import Struct

from edge.store.client import Store
from edge.store.commit import Commit, HashField, operation
from edge.store.keys import Keys

_BD_SEQ: Final = "bdseq"
_CURSOR: Final = "cursor:"


class NodeRecord(Struct, frozen=True):
    """The number of the last connection, None before the first; the position in each stream by its name."""

    bd_seq: int | None
    cursors: dict[str, str]


async def load(store: Store) -> NodeRecord:
    """Read what the edge node keeps."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.sparkplug())
    number = found.get(_BD_SEQ, "")
    cursors = {name.removeprefix(_CURSOR): text for name, text in found.items() if name.startswith(_CURSOR)}
    return NodeRecord(int(number) if number.isdecimal() else None, cursors)


def save_bd_seq(keys: Keys, number: int, former: int | None) -> Commit:
    """Write the number of a connection, which follows the former one."""
    guard = HashField(keys.sparkplug(), _BD_SEQ, None if former is None else str(former))
    return Commit((guard,), (("HSET", keys.sparkplug(), _BD_SEQ, number),))


def save_cursor(keys: Keys, stream: str, position: str) -> Commit:
    """Write up to which entry of a stream everything was published."""
    return operation("HSET", keys.sparkplug(), f"{_CURSOR}{stream}", position)
