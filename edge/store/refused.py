"""Store and count refused messages and declined calls, for a person to look at."""

from dataclasses import dataclass, field  # noqa: TID251 - a member is not compared

from edge.foundation.errors import Refused
from edge.model.secret_text import hide_in_payload, hide_secrets
from edge.store.client import Store
from edge.store.commit import Commit, fields, join, operation
from edge.store.keys import Keys
from edge.store.stream import entries

COUNTER = "refused"
DECLINED_COUNTER = "declined"
STREAM_LENGTH = 1000
_KEPT_BYTES = 4096
_READ_BYTES = 65_536
_KEPT_CHARACTERS = 1000
"""The limit of each other text: some of them come from the sender."""


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A refused message or a declined call: where it came from, the reason, and the beginning of its payload."""

    way: str
    event_type: str
    event_id: str
    kind: str
    reason: str
    payload: bytes
    at: int | None = field(default=None, compare=False)
    """When it was stored, in milliseconds since the epoch; read from the store."""


def record_refusal(keys: Keys, message: RefusedMessage, count: int = 1) -> Commit:
    """Store a refused message among the newest; count it with those before it that were not stored."""
    return join((_append(keys, message), operation("INCRBY", keys.counter(COUNTER), count)))


def record_decline(keys: Keys, call: RefusedMessage) -> Commit:
    """Store a declined call among the newest refused messages, and count it apart from them."""
    return join((_append(keys, call), operation("INCR", keys.counter(DECLINED_COUNTER))))


def _append(keys: Keys, message: RefusedMessage) -> Commit:
    texts = {
        "way": message.way,
        "type": message.event_type,
        "id": message.event_id,
        "kind": message.kind,
        "reason": hide_secrets(message.reason),
    }
    cut = {name: text[:_KEPT_CHARACTERS] for name, text in texts.items()}
    # A longer payload is not read whole: secrets in its beginning are found by their form.
    payload = hide_in_payload(message.payload[:_READ_BYTES])[:_KEPT_BYTES]
    entry = fields(cut | {"payload": payload})
    return operation("XADD", keys.event_refused_list(), "MAXLEN", "~", STREAM_LENGTH, "*", *entry)


async def newest(store: Store, many: int) -> list[RefusedMessage]:
    """Return the last refused messages and declined calls, newest first; payloads as they were stored."""
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


async def count(store: Store, counter: str = COUNTER) -> int:
    """Return a counter since the store was created. Raises Refused when it cannot be read."""
    key = store.keys.counter(counter)
    text = await store.execute("GET", key)
    try:
        return int(text or 0)
    except ValueError as error:
        advice = f"Find out who has written it, then start again: redis-cli DEL {key}"
        raise Refused("unreadable", f"the counter cannot be read: {key} holds {text!r}", advice) from error
