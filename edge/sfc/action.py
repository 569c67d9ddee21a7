"""Changes the associations of a step: at activation, in time, when answered, at deactivation, at the end.

Everything here reads the table of `edge.sfc.net`; the states are those of IEC 61131-3's action control, one per
association, with storage per action name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from edge.foundation.text import Text, join_texts
from edge.sfc.identifiers import AssociationKey, command_id, parse_command_id
from edge.sfc.net import Leave, Moment, Net, NetAction, QualifierRule
from edge.sfc.run import UNSUCCESSFUL, ActionState, Association, Outcome, PastAttempt, Run, Sending
from edge.sfc.signal import Ignored, IgnoredKind, Phase, Withdrawn
from edge.sfc.view import Draft


def on_activated(draft: Draft, action: NetAction) -> None:
    """Handle the activation of the step of an association."""
    rule = action.rule
    if rule.resets:
        reset_storage(draft, action.name)
    elif rule.stored and _is_set(draft, action):
        return
    if rule.sends is Moment.ACTIVATION:
        start_action(draft, action)
    else:
        due = draft.now + action.duration_ms if rule.sends is Moment.DURATION else None
        attempt = _keep_open_command(draft, action.key)
        draft.put(action.key, Association(action=action.name, step=action.step, attempt=attempt, due=due))
    if rule.stores is Moment.ACTIVATION:
        draft.set_stored(action.name, action.key)


def _keep_open_command(draft: Draft, key: AssociationKey) -> int:
    """Keep a command of the last activation that is still open, next to the new activation.

    Returns the attempt of the last activation.
    """
    old = draft.associations.get(key)
    if old is None:
        return 0
    if old.awaits_outcome:
        draft.put(key.left_behind(old.attempt), old)
    else:
        draft.remember(old)
    return old.attempt


def _is_set(draft: Draft, action: NetAction) -> bool:
    """Return whether the action is set already; then this association shares the start that set it.

    A start that failed or timed out set nothing reliable: it is sent again. The delay of an SD keeps
    only its own association from starting.
    """
    key = draft.stored.get(action.name)
    if key is None:
        return False
    origin = draft.associations[key]
    if key == action.key:
        return origin.state not in UNSUCCESSFUL
    if origin.state in UNSUCCESSFUL or origin.state is ActionState.PENDING:
        return False
    draft.put(action.key, replace(origin, step=action.step, due=None))
    return True


def start_action(draft: Draft, action: NetAction) -> None:
    """Send the command of an association, or arm its wait."""
    _keep_open_command(draft, action.key)
    attempt = draft.attempts(action.name, reset=action.rule.resets) + 1
    deadline = draft.now + action.timeout_ms if action.timeout_ms else None
    association = Association(
        action=action.name,
        step=action.step,
        state=ActionState.WAITING if action.pull else ActionState.DISPATCHED,
        attempt=attempt,
        reset=action.rule.resets,
        command_id=command_id(draft.run.job_id, draft.run.run_id, action.name, attempt, reset=action.rule.resets),
        armed_at=draft.now,
        deadline=deadline,
        due=draft.now + action.duration_ms if action.rule.ends else None,
        type_id=action.type_id if action.pull else "",
    )
    draft.put(action.key, association)
    if not action.pull:
        draft.send(action, Phase.RESET if action.rule.resets else Phase.START, association)
        return
    for number, event in draft.early.items():
        if event.type_id == action.type_id:
            del draft.early[number]
            draft.touched.add(("early", number))
            on_completed(draft, action.key, event.data, event.id)
            return


def on_deactivated(draft: Draft, action: NetAction) -> None:
    """Handle the deactivation of the step of an association."""
    rule = action.rule
    if rule.sends is Moment.DEACTIVATION:
        start_action(draft, action)
        return
    association = draft.associations[action.key]
    if not association.is_open:
        return
    match rule.leave:
        case Leave.STOP:
            draft.stop(action, association)
            _end_association(draft, action.key, association, ActionState.STOPPED)
        case Leave.CANCEL_DELAY:
            if association.state is ActionState.PENDING:
                _end_association(draft, action.key, association, ActionState.STOPPED)
        case Leave.KEEP:
            if rule.stored:
                return
            if association.state is ActionState.WAITING:
                # A wait that is no longer needed would take the event of the next part.
                _end_association(draft, action.key, association, ActionState.STOPPED)
            else:
                # The step that waited is left: the pulse is no longer supervised.
                draft.put(action.key, replace(association, deadline=None))


def _end_association(
    draft: Draft, key: AssociationKey, association: Association, state: ActionState, error: str | Text | None = None
) -> None:
    draft.put(key, ended_association(association, state, draft.now, error))


def ended_association(
    association: Association, state: ActionState, now: int, error: str | Text | None = None
) -> Association:
    """Return an association that has ended; a stop leaves an unknown outcome unknown."""
    if state is ActionState.STOPPED and association.state is ActionState.UNKNOWN:
        state, error = association.state, association.error
    return replace(association, state=state, deadline=None, due=None, ended_at=now, error=error)


def reset_storage(draft: Draft, name: str) -> None:
    """Clear what S, SD, DS or SL set, with their delays and limits (qualifier R)."""
    draft.clear_stored(name)
    for action in draft.net.starting.get(name, ()):
        association = draft.associations.get(action.key)
        if not action.rule.stored or association is None or not association.is_open:
            continue
        if association.state is ActionState.COMPLETED:
            draft.put(action.key, replace(association, due=None))
        else:
            _end_association(draft, action.key, association, ActionState.STOPPED)


def on_duration_elapsed(draft: Draft, key: AssociationKey) -> None:
    """Handle the end of the duration T: a delayed command is sent, a limited one ends."""
    action, association = draft.action_of(key), draft.associations[key]
    if association.state is ActionState.PENDING:
        if action.rule.stored:
            if draft.stored.get(action.name) != key and _is_set(draft, action):
                return
            draft.set_stored(action.name, key)
        start_action(draft, action)
        return
    draft.stop(action, association)
    if association.state is ActionState.COMPLETED:
        draft.put(key, replace(association, due=None))
        return
    _end_association(draft, key, association, ActionState.STOPPED if action.rule.stored else ActionState.COMPLETED)
    _update_sharing(draft, key)


def on_timeout(draft: Draft, key: AssociationKey) -> None:
    """Handle a timeout: the answer or event of an association did not arrive in time."""
    action, association = draft.action_of(key), draft.associations[key]
    draft.stop(action, association)
    error = Text.of("timed out after {seconds:g} s", seconds=action.timeout_ms / 1000)
    _end_association(draft, key, association, ActionState.TIMED_OUT, error)
    _update_sharing(draft, key)
    _record_failure(draft, key)


def on_completed(draft: Draft, key: AssociationKey, result: Any, event_id: str = "") -> None:
    """Handle a successful answer, or the event, of an association."""
    key = origin_of(draft, key)
    action, association = draft.action_of(key), draft.associations[key]
    draft.merge_variables(result)
    due = association.due if action.rule.stored else None
    draft.put(
        key,
        replace(
            association,
            state=ActionState.COMPLETED,
            deadline=None,
            due=due,
            ended_at=draft.now,
            result=result,
            error=None,
            event_id=event_id,
        ),
    )
    if key.is_left_behind:
        draft.remember(draft.associations[key])
        draft.drop(key)
    else:
        _update_sharing(draft, key)


def on_failed(draft: Draft, key: AssociationKey, error: Text) -> None:
    """Handle an answer that reports a failure."""
    key = origin_of(draft, key)
    _end_association(draft, key, draft.associations[key], ActionState.FAILED, error)
    _update_sharing(draft, key)
    _record_failure(draft, key)


def on_unknown(draft: Draft, key: AssociationKey, reason: str | Text) -> None:
    """Handle an unknown outcome: nothing supervises the action until the outcome is found or resolved."""
    key = origin_of(draft, key)
    association = draft.associations[key]
    error = Text.of("outcome unknown: {reason}", reason=reason)
    draft.put(key, replace(association, state=ActionState.UNKNOWN, deadline=None, error=error))
    _update_sharing(draft, key)


def repeat(draft: Draft, key: AssociationKey) -> None:
    """Start an action again that failed or whose outcome is unknown: the next attempt, under a new command id."""
    key = origin_of(draft, key)
    association, action = draft.associations[key], draft.action_of(key)
    if association.awaits_outcome:
        _end_association(draft, key, association, ActionState.UNKNOWN, association.error)
    start_action(draft, action)
    for other in draft.net.starting[action.name] if action.rule.stored else ():
        shared = draft.associations.get(other.key)
        if other.key == key or shared is None or shared.attempt != association.attempt:
            continue
        if shared.is_open or shared.state in UNSUCCESSFUL:
            draft.put(other.key, replace(draft.associations[key], step=other.step, due=None))


def skip(draft: Draft, key: AssociationKey, result: Any) -> None:
    """Complete an action in place of its equipment: an unanswered command is stopped, a delay is dropped."""
    key = origin_of(draft, key)
    association = draft.associations[key]
    draft.stop(draft.action_of(key), association)
    draft.put(key, replace(association, due=None))
    on_completed(draft, key, result)


def origin_of(draft: Draft, key: AssociationKey) -> AssociationKey:
    """Return the association that set an action in place of one that shares its start."""
    association = draft.associations[key]
    origin = draft.stored.get(association.action)
    return (
        origin
        if origin is not None and draft.associations[origin].attempt == association.attempt and not association.reset
        else key
    )


def _update_sharing(draft: Draft, key: AssociationKey) -> None:
    """Update the associations that share a stored start with its outcome."""
    association = draft.associations[key]
    action = draft.action_of(key)
    if not action.rule.stored:
        return
    for other in draft.net.starting[action.name]:
        shared = draft.associations.get(other.key)
        if (
            other.key != key
            and shared is not None
            and shared.attempt == association.attempt
            and shared.state is not association.state
            and (shared.is_open or shared.state in UNSUCCESSFUL)
        ):
            draft.put(other.key, replace(association, step=other.step, due=None))


def _record_failure(draft: Draft, key: AssociationKey) -> None:
    """Record a failure, to be judged, for every association that shares it."""
    association = draft.associations[key]
    draft.faults.append(key)
    for action in draft.net.starting[association.action] if not association.reset else ():
        other = draft.associations.get(action.key)
        if action.key != key and other and other.state is association.state and other.attempt == association.attempt:
            draft.faults.append(action.key)


TIME_PASSED: Final = Text.of("its time passed before a gateway could send it")
JOB_ENDED: Final = Text.of("its job ended before a gateway could send it")
ENDED: Final = Text.of("it ended before a gateway could send it")

_Attempt = tuple[str, int, bool]


def withdraw(draft: Draft, signal: Withdrawn) -> Ignored | None:
    """Mark the activations of a withdrawn command; the command itself has ended before, by a stop or a time limit."""
    key = parse_command_id(signal.command_id)
    if key is None or (key.job_id, key.run_id) != (draft.run.job_id, draft.run.run_id):
        return Ignored(
            IgnoredKind.FOREIGN, Text.of("command {command_id!r} is not of this run", command_id=signal.command_id)
        )
    wanted = (key.action, key.attempt, key.reset)
    current = {name: action for name, action in draft.associations.items() if _attempt(action) == wanted}
    if any(action.awaits_outcome for action in current.values()):
        return Ignored(
            IgnoredKind.NOT_POSSIBLE,
            Text.of("command {command_id!r} still waits to be sent", command_id=signal.command_id),
        )
    past = {n: earlier for n, earlier in draft.past.items() if _attempt(earlier) == wanted and not earlier.late}
    if not current and not past:
        return Ignored(IgnoredKind.LATE, Text.of("command {command_id!r} is forgotten", command_id=signal.command_id))
    every: tuple[Association | PastAttempt, ...] = (*current.values(), *past.values())
    if signal.may_have_left and any(_is_settled(draft.net, attempt) for attempt in every):
        return Ignored(
            IgnoredKind.DUPLICATE,
            Text.of("command {command_id!r} is answered, or known not to be sent", command_id=signal.command_id),
        )
    for name, action in current.items():
        draft.put(name, replace(action, error=_error(action, signal), **_marks(signal)))
    for number, earlier in past.items():
        marked = replace(earlier, error=_error(earlier, signal), **_marks(signal))
        draft.past = draft.past | {number: marked}
        draft.touched.add(("past", number))
    return None


def unsent_reason(net: Net, run: Run, command_id: str) -> str | Text:
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


def unsent_text(attempt: Association | PastAttempt) -> str | Text:
    """Return as text that a command was never sent, or may not have been, with the reason where it has one."""
    return attempt.error or attempt.sending.text


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


def failed(reason: str | Text | None) -> Text:
    """Return that an action failed, with the reason if there is one."""
    return Text.of("failed: {reason}", reason=reason) if reason else Text.of("failed")


def _error(action: Association | PastAttempt, signal: Withdrawn) -> str | Text | None:
    """Return the error with the reason; the result of a person stands alone."""
    if action.state is ActionState.COMPLETED and action.result is not None:
        return action.error
    sending = Sending.MAYBE if signal.may_have_left else Sending.NEVER
    text = join_texts(": ", (sending.text, signal.reason)) if signal.reason else sending.text
    return join_texts("; ", (action.error, text)) if action.error else text
