"""Releases stops and resets that equipment has not confirmed, when an operator has made the tool safe by hand."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from edge.foundation.errors import Refused
from edge.model.acceptance import MAX_TEXT_LENGTH
from edge.model.isa95 import ReleasedStop
from edge.store import dedupe, safing
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.keys import Keys
from edge.store.safing import SafingCommand


class ReleaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The release of the open stops of a piece of equipment: all of these scopes, or those of one command.

    `by` names the operator, `reason` says how the tool was made safe; `source` and `event_id` together name the
    request.
    """

    equipment: str
    scopes: Collection[str]
    command_id: str | None = None
    by: str
    reason: str
    source: str
    event_id: str


async def release(
    store: Store, equipment: Mapping[str, Collection[str]], request: ReleaseRequest, dedupe_ms: int
) -> Sequence[ReleasedStop]:
    """Release open stops and resets and return them; they are not sent any more. The same request gets the same answer.

    `equipment` maps each name to its command types. The gateway of the scope records operator and reason at the job.
    Raises Refused(`nothing_open`) when there is none, Refused(`unknown_equipment`) for a name that is not in the
    settings, Refused(`invalid_payload`) without operator or reason, Unavailable when the store is gone.
    """
    type_ids = _validated(equipment, request)
    while True:
        given = await dedupe.load_answer(store, request.source, request.event_id)
        if given is not None:
            return dedupe.decode_answer(given, tuple[ReleasedStop, ...])
        found = [
            safing_command
            for safing_command in await safing.load_all(store)
            if _is_asked_for(safing_command, type_ids, request)
        ]
        if not found:
            what = f"command {request.command_id!r}" if request.command_id else request.equipment
            advice = "List them: edge equipment list. The gateway repeats a disable until the controller confirms it."
            raise Refused("nothing_open", f"no stop or reset of {what} is open", advice)
        answer = tuple(
            ReleasedStop(
                command=safing_command.command_id, phase=safing_command.phase.value, job_order_id=safing_command.job_id
            )
            for safing_command in found
        )
        text = msgspec.json.encode(answer).decode()
        marked = dedupe.mark(store.keys, request.source, request.event_id, text, dedupe_ms)
        parts = [_release(store.keys, safing_command, request) for safing_command in found]
        if isinstance(await store.commit(join((marked, *parts))), Committed):
            return answer


def _is_asked_for(command: SafingCommand, type_ids: Collection[str], request: ReleaseRequest) -> bool:
    if command.released_by or command.type_id not in type_ids or command.scope not in request.scopes:
        return False
    return request.command_id in {None, command.command_id}


def _release(keys: Keys, command: SafingCommand, request: ReleaseRequest) -> Commit:
    released = msgspec.structs.replace(command, released_by=request.by, release_reason=request.reason)
    return safing.save(keys, released)


def _validated(equipment: Mapping[str, Collection[str]], request: ReleaseRequest) -> Collection[str]:
    """Return the command types of the equipment."""
    if not request.by or not request.reason.strip():
        raise Refused("invalid_payload", "a release needs an operator and a reason", "Say how the tool was made safe.")
    if len(request.by) + len(request.reason) > MAX_TEXT_LENGTH:
        raise Refused("invalid_payload", f"operator and reason are longer than {MAX_TEXT_LENGTH} characters")
    if request.equipment not in equipment:
        known = ", ".join(sorted(equipment)) or "none"
        raise Refused(
            "unknown_equipment", f"the settings have no equipment {request.equipment!r}", f"They have {known}."
        )
    return equipment[request.equipment]
