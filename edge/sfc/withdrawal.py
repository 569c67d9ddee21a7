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
    current = {name: action for name, action in draft.associations.items() if _attempt(action) == wanted}
    if any(action.awaits_outcome for action in current.values()):
        return Ignored(IgnoredKind.NOT_POSSIBLE, f"command {signal.command_id!r} still waits to be sent")
    past = {n: earlier for n, earlier in draft.past.items() if _attempt(earlier) == wanted and not earlier.late}
    if not current and not past:
        return Ignored(IgnoredKind.LATE, f"command {signal.command_id!r} is forgotten")
    for name, action in current.items():
        draft.put(name, replace(action, withdrawn=True, error=_error(action, signal.reason)))
    for number, earlier in past.items():
        draft.past = draft.past | {number: replace(earlier, withdrawn=True, error=_error(earlier, signal.reason))}
        draft.touched.add(("past", number))
    return None


def _attempt(action: Association | PastAttempt) -> tuple[str, int, bool]:
    return action.action, action.attempt, action.reset


def _error(action: Association | PastAttempt, reason: str) -> str | None:
    if action.state is ActionState.COMPLETED:
        return action.error
    never = f"never sent: {reason}" if reason else "never sent"
    return f"{action.error}; {never}" if action.error else never
