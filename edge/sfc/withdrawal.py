"""Records that a command never left the gateway: its stop has nothing to stop, and no tool can be active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from edge.sfc.command_id import parse_command_id
from edge.sfc.run import ActionState
from edge.sfc.signal import Ignored, IgnoredKind, Withdrawn

if TYPE_CHECKING:
    from edge.sfc.draft import Draft
    from edge.sfc.run import Association, PastAttempt


def withdraw(draft: Draft, signal: Withdrawn) -> Ignored | None:
    """Mark the activations of a withdrawn command; the command itself has ended before, by a stop or a time limit."""
    key = parse_command_id(signal.command_id)
    if key is None or (key.job_id, key.run_id) != (draft.run.job_id, draft.run.run_id):
        return Ignored(IgnoredKind.FOREIGN, f"command {signal.command_id!r} is not of this run")
    wanted = (key.action, key.attempt, key.reset)
    current = {name: each for name, each in draft.associations.items() if _attempt(each) == wanted}
    if any(each.awaits_outcome for each in current.values()):
        return Ignored(IgnoredKind.NOT_POSSIBLE, f"command {signal.command_id!r} still waits to be sent")
    past = {number: each for number, each in draft.past.items() if _attempt(each) == wanted and not each.late}
    if not current and not past:
        return Ignored(IgnoredKind.LATE, f"command {signal.command_id!r} is forgotten")
    for name, each in current.items():
        draft.put(name, replace(each, withdrawn=True, error=_error(each, signal.reason)))
    for number, earlier in past.items():
        draft.past = draft.past | {number: replace(earlier, withdrawn=True, error=_error(earlier, signal.reason))}
        draft.touched.add(("past", number))
    return None


def _attempt(each: Association | PastAttempt) -> tuple[str, int, bool]:
    return each.action, each.attempt, each.reset


def _error(each: Association | PastAttempt, reason: str) -> str | None:
    if each.state is ActionState.COMPLETED:
        return each.error
    never = f"never sent: {reason}" if reason else "never sent"
    return f"{each.error}; {never}" if each.error else never
