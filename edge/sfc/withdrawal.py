"""Records that a command that has ended never left the gateway, or may not have: its response must not claim more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from edge.sfc.association_key import AssociationKey
from edge.sfc.command_id import parse_command_id
from edge.sfc.draft import Draft
from edge.sfc.net import Net
from edge.sfc.qualifier import QualifierRule
from edge.sfc.run import ActionState, Association, Outcome, PastAttempt, Run, Sending
from edge.sfc.signal import Ignored, IgnoredKind, Withdrawn

TIME_PASSED: Final = "its time passed before a gateway could send it"
JOB_ENDED: Final = "its job ended before a gateway could send it"
ENDED: Final = "it ended before a gateway could send it"

_Attempt = tuple[str, int, bool]


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
    every: tuple[Association | PastAttempt, ...] = (*current.values(), *past.values())
    if signal.may_have_left and any(_is_settled(draft.net, attempt) for attempt in every):
        return Ignored(IgnoredKind.DUPLICATE, f"command {signal.command_id!r} is answered, or known not to be sent")
    for name, action in current.items():
        draft.put(name, replace(action, error=_error(action, signal), **_marks(signal)))
    for number, earlier in past.items():
        marked = replace(earlier, error=_error(earlier, signal), **_marks(signal))
        draft.past = draft.past | {number: marked}
        draft.touched.add(("past", number))
    return None


def unsent_reason(net: Net, run: Run, command_id: str) -> str:
    """Return why a command has ended that was not sent until then; empty where the run does not know it."""
    key = parse_command_id(command_id)
    wanted = (key.action, key.attempt, key.reset) if key and key.run_id == run.run_id else None
    every: Iterator[Association | PastAttempt] = iter((*run.associations.values(), *run.past.values()))
    found = next((attempt for attempt in every if _attempt(attempt) == wanted), None)
    if found is None:
        return ""
    is_over_with_job = run.outcome not in {Outcome.RUNNING, Outcome.COMPLETED} and found.ended_at == run.ended_at
    match found.state:
        case ActionState.TIMED_OUT:
            return TIME_PASSED
        case ActionState.STOPPED:
            return JOB_ENDED if is_over_with_job else TIME_PASSED
        case ActionState.COMPLETED if _rule_of(net, found).ends:
            return TIME_PASSED
        case _:
            return ENDED


def unsent_commands(run: Run) -> tuple[Association, ...]:
    """Return the latest activations whose command has ended and was never sent, or may not have been."""
    return tuple(association for association in run.associations.values() if association.sending is not Sending.SENT)


def unsent_text(attempt: Association | PastAttempt) -> str:
    """Return as text that a command was never sent, or may not have been, with the reason where it has one."""
    return attempt.error or attempt.sending.value


def _attempt(action: Association | PastAttempt) -> _Attempt:
    return action.action, action.attempt, action.reset


def _marks(signal: Withdrawn) -> dict[str, bool]:
    return {"withdrawn": not signal.may_have_left, "doubtful": signal.may_have_left}


def _is_settled(net: Net, attempt: Association | PastAttempt) -> bool:
    """Return whether it is known if a command was sent, or the equipment has answered it.

    Of the commands that are to be stopped, only an SL may have been answered.
    """
    if attempt.sending is not Sending.SENT or attempt.state is ActionState.FAILED:
        return True
    rule = _rule_of(net, attempt)
    return attempt.state is ActionState.COMPLETED and rule.stored and rule.ends


def _rule_of(net: Net, attempt: Association | PastAttempt) -> QualifierRule:
    return net.actions[AssociationKey(attempt.action, attempt.step)].rule


def _error(action: Association | PastAttempt, signal: Withdrawn) -> str | None:
    """Return the error with the reason; the result of a person stands alone."""
    if action.state is ActionState.COMPLETED and action.result is not None:
        return action.error
    sending = Sending.MAYBE if signal.may_have_left else Sending.NEVER
    text = f"{sending}: {signal.reason}" if signal.reason else sending.value
    return f"{action.error}; {text}" if action.error else text
