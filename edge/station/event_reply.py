"""The reply to an equipment event, as it is stored for a repetition of the event."""

import msgspec

from edge.station.decision import Decision
from edge.station.equipment import Kept, Task
from edge.store import dedupe

EventReply = Task | Kept | None
"""The work that the event was used for, that it is kept for its job, or None when it was discarded."""


def reply_of(decision: Decision) -> EventReply:
    """Return the reply to an event that a run has used or kept."""
    run = decision.loaded.stored.run
    if decision.taken is None:
        return Kept(run.job_id)
    action = decision.loaded.net.actions[decision.taken]
    return Task(run.job_id, action.name, action.parameters | run.parameters)


def encode_reply(reply: EventReply) -> str:
    """Encode a reply for the store."""
    return msgspec.json.encode(reply if isinstance(reply, Task) else _Stored(reply.job_id) if reply else None).decode()


def decode_reply(text: str) -> EventReply:
    """Decode a stored reply, also of an earlier release: a kept event was stored as discarded.

    Raises Refused(`repeated_id`) for the answer to a message that is not an event.
    """
    found = msgspec.json.decode(text)
    if found is None:
        return None
    if isinstance(found, dict) and "kept" in found:
        return Kept(found["kept"])
    try:
        return msgspec.convert(found, Task)
    except msgspec.ValidationError:
        raise dedupe.repeated_id() from None


class _Stored(msgspec.Struct, frozen=True):
    kept: str
