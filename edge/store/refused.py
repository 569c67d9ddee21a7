"""What could not be taken: set aside for a person to look at, and counted."""

from dataclasses import dataclass, field

from edge.errors import Refused
from edge.store.client import Store
from edge.store.commit import Commit, fields, join, operation
from edge.store.keys import Keys
from edge.store.stream import entries

COUNTER = "refused"
STREAM_LENGTH = 1000
_KEPT_BYTES = 4096
_KEPT_CHARACTERS = 1000
"""Of each of the other texts: who sends nonsense has written some of them, too."""


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that was refused: where it came in, what was wrong, and the beginning of what it held."""

    way: str
    event_type: str
    event_id: str
    kind: str
    reason: str
    payload: bytes
    at: int | None = field(default=None, compare=False)
    """When it was set aside, in milliseconds since the epoch; read from the store."""


def record_refusal(keys: Keys, message: RefusedMessage) -> Commit:
    """Keep a refused message among the newest, and count it."""
    texts = {
        "way": message.way,
        "type": message.event_type,
        "id": message.event_id,
        "kind": message.kind,
        "reason": message.reason,
    }
    cut = {name: text[:_KEPT_CHARACTERS] for name, text in texts.items()}
    payload = message.payload[:_KEPT_BYTES].decode(errors="backslashreplace")
    entry = fields(cut | {"payload": payload})
    return join(
        (
            operation("XADD", keys.event_refused_list(), "MAXLEN", "~", STREAM_LENGTH, "*", *entry),
            operation("INCR", keys.counter(COUNTER)),
        )
    )


async def newest(store: Store, many: int) -> list[RefusedMessage]:
    """Return what was set aside last, the newest first; payloads as they were kept."""
    reply = await store.execute("XREVRANGE", store.keys.event_refused_list(), "+", "-", "COUNT", many)
    return [
        RefusedMessage(
            way=entry.fields["way"],
            event_type=entry.fields["type"],
            event_id=entry.fields["id"],
            kind=entry.fields["kind"],
            reason=entry.fields["reason"],
            payload=entry.fields["payload"].encode(),
            at=int(entry.entry_id.partition("-")[0]),
        )
        for entry in entries(reply)
    ]


async def count(store: Store) -> int:
    """Return how many messages were refused since the store began. Raises Refused when the counter cannot be read."""
    key = store.keys.counter(COUNTER)
    text = await store.execute("GET", key)
    try:
        return int(text or 0)
    except ValueError as error:
        advice = f"Find out who has written it, then start again: redis-cli DEL {key}"
        raise Refused("unreadable", f"the counter cannot be read: {key} holds {text!r}", advice) from error
