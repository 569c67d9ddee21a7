"""Releases stops and resets that equipment has not confirmed, when an operator has made the tool safe by hand."""

from collections.abc import Collection, Sequence

import msgspec

from edge.errors import Refused
from edge.model.acceptance import MAX_TEXT_LENGTH
from edge.sfc.signal import Late
from edge.station.runs import Runs
from edge.store import safing
from edge.store.safing import SafingCommand


async def release(
    active_runs: Runs, type_ids: Collection[str], command_id: str | None, by: str, reason: str
) -> Sequence[SafingCommand]:
    """Release the open stops and resets of equipment, all or those of one command; return them.

    They are not sent any more. The gateway writes the audit record; job and log name the operator `by` and the reason.
    Raises Refused(`nothing_open`) when there is none.
    """
    if not by or not reason:
        raise Refused("invalid_payload", "a release needs an operator and a reason", "Say how the tool was made safe.")
    if len(by) + len(reason) > MAX_TEXT_LENGTH:
        raise Refused("invalid_payload", f"operator and reason are longer than {MAX_TEXT_LENGTH} characters")
    store = active_runs.store
    found = [
        each
        for each in await safing.load_all(store)
        if each.type_id in type_ids and command_id in {None, each.command_id} and not each.released_by
    ]
    if not found:
        what = f"command {command_id!r}" if command_id else "this equipment"
        raise Refused("nothing_open", f"no stop or reset of {what} is open", "List the equipment: edge equipment list")
    for each in found:
        released = msgspec.structs.replace(each, released_by=by, release_reason=reason)
        await store.commit(safing.save(store.keys, released))
        await active_runs.signal(each.job_id, Late(each.command_id, error=f"stop released by {by}: {reason}"))
    return found
