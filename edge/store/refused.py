"""What could not be taken: set aside for a person to look at, and counted."""

from dataclasses import dataclass

from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.stream import entries

COUNTER = "refused"
STREAM_LENGTH = 1000
_KEPT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SetAside:
    """A message that was refused: where it came in, what was wrong, and the beginning of what it held."""

    way: str
    event_type: str
    event_id: str
    kind: str
    reason: str
    payload: bytes


def set_aside(keys: Keys, message: SetAside) -> Commit:
    """Keep a refused message among the newest, and count it."""
    entry = (
        *("way", message.way, "type", message.event_type, "id", message.event_id),
        *("kind", message.kind, "reason", message.reason),
        *("payload", message.payload[:_KEPT_BYTES].decode(errors="backslashreplace")),
    )
    return join(
        (
            operation("XADD", keys.event_refused_list(), "MAXLEN", "~", STREAM_LENGTH, "*", *entry),
            operation("INCR", keys.counter(COUNTER)),
        )
    )


async def newest(store: Store, many: int) -> list[SetAside]:
    """Give what was set aside last, the newest first; payloads as they were kept."""
    reply = await store.execute("XREVRANGE", store.keys.event_refused_list(), "+", "-", "COUNT", many)
    return [
        SetAside(
            way=found["way"],
            event_type=found["type"],
            event_id=found["id"],
            kind=found["kind"],
            reason=found["reason"],
            payload=found["payload"].encode(),
        )
        for found in (entry.fields for entry in entries(reply))
    ]


async def count(store: Store) -> int:
    """Give how many messages were refused since the store began."""
    return int(await store.execute("GET", store.keys.counter(COUNTER)) or 0)
