"""Decides what a signal changes: from a net, a run and a signal to the next run and its requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, assert_never

from msgspec.structs import replace

from edge.foundation.text import Text
from edge.sfc.action import (
    ended_association,
    failed,
    on_completed,
    on_duration_elapsed,
    on_failed,
    on_timeout,
    on_unknown,
    withdraw,
)
from edge.sfc.evolve import LivelockError, activate, end, settle
from edge.sfc.identifiers import AssociationKey, CommandKey, parse_command_id
from edge.sfc.intervention import answer as answer_in_person
from edge.sfc.intervention import intervene, resolve
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, KeptEvent, Outcome, PastAttempt, Run, key_of_command
from edge.sfc.signal import (
    NO_MIRRORS,
    Abort,
    Advanced,
    Answer,
    Begun,
    Event,
    Granted,
    Ignored,
    IgnoredKind,
    Intervene,
    Late,
    Mirrors,
    Pause,
    PersonAnswer,
    Resolve,
    Resume,
    Signal,
    Start,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)
from edge.sfc.view import Draft, stands, wakes_after

MAX_EARLY_EVENTS: Final = 100


def advance(net: Net, run: Run, signal: Signal, now: int, mirrors: Mirrors = NO_MIRRORS) -> Advanced | Ignored:
    """Decide what a signal changes; `now` is in milliseconds since the Unix epoch, `mirrors` are as read last.

    Pure and total: the same arguments return the same answer, and no signal in no state raises an exception.
    """
    if isinstance(signal, Late):
        return _keep_late(net, run, signal, now)
    if isinstance(signal, Withdrawn):
        return _withdrawn(net, run, signal, now)
    if run.ended and isinstance(signal, Answer):
        return _answer_after_end(net, run, signal, now)
    if run.ended:
        return Ignored(IgnoredKind.ENDED, Text.of("the run is {outcome} already", outcome=run.outcome.text))
    if run.started_at is None and not isinstance(signal, (Start, Event, Abort, Stop)):
        return Ignored(IgnoredKind.NOT_STARTED, "the run has not started yet")
    draft = Draft(net, run, now, mirrors)
    asked_mirrors = draft.mirrors
    try:
        ignored = _dispatch(draft, signal)
    except LivelockError as error:
        # No request of such a decision may be sent: decide again, and only fail the run.
        draft, ignored = Draft(net, run, now), None
        draft.started_at = draft.started_at if draft.started_at is not None else now
        end(draft, Outcome.FAILED, error.text)
    if ignored is not None:
        return ignored
    return Advanced(draft.finish(), tuple(draft.requests), tuple(draft.changes), draft.taken, asked_mirrors.recorded)


def _withdrawn(net: Net, run: Run, signal: Withdrawn, now: int) -> Advanced | Ignored:
    """Record a withdrawn command, also after the end of the run; nothing evolves."""
    draft = Draft(net, run, now)
    return withdraw(draft, signal) or Advanced(draft.finish(), (), ())


def _dispatch(
    draft: Draft,
    signal: (
        Start
        | Answer
        | Unknown
        | Begun
        | Resolve
        | Intervene
        | PersonAnswer
        | Event
        | Tick
        | Granted
        | Pause
        | Resume
        | Abort
        | Stop
    ),
) -> Ignored | None:
    match signal:
        case Start():
            return _start(draft)
        case Answer():
            return _answer(draft, signal)
        case Unknown():
            return _unknown(draft, signal)
        case Begun():
            return _begun(draft, signal)
        case Resolve():
            return resolve(draft, signal)
        case Intervene():
            return intervene(draft, signal)
        case PersonAnswer():
            return _person_answer(draft, signal)
        case Event():
            return _event(draft, signal)
        case Tick():
            return _tick(draft)
        case Granted():
            return _granted(draft, signal)
        case Pause():
            return _pause(draft)
        case Resume():
            return _resume(draft)
        case Abort(reason=reason):
            end(draft, Outcome.ABORTED, reason or Text.of("aborted"))
        case Stop(reason=reason):
            end(draft, Outcome.STOPPED, reason or Text.of("stopped"))
        case _:
            assert_never(signal)
    return None


def _start(draft: Draft) -> Ignored | None:
    if draft.started_at is not None:
        return Ignored(IgnoredKind.STARTED, "the run has started already")
    draft.started_at = draft.now
    if not draft.net.entry.locks:
        activate(draft, draft.net.initial)
    settle(draft)
    return None


def _settle_if_running(draft: Draft) -> None:
    """Advance the run, unless it is paused or has ended."""
    if draft.paused_at is None and draft.outcome is Outcome.RUNNING:
        settle(draft)


def _answer(draft: Draft, answer: Answer) -> Ignored | None:
    association = _open_command(draft, answer.command_id, answer.data)
    if isinstance(association, Ignored):
        return association
    if answer.ok:
        on_completed(draft, association, answer.data)
    else:
        on_failed(draft, association, failed(answer.error))
    _settle_if_running(draft)
    return None


def _person_answer(draft: Draft, answer: PersonAnswer) -> Ignored | None:
    association = _open_command(draft, answer.command_id, answer.data)
    return association if isinstance(association, Ignored) else answer_in_person(draft, association, answer)


def _unknown(draft: Draft, unknown: Unknown) -> Ignored | None:
    association = _open_command(draft, unknown.command_id)
    if isinstance(association, Ignored):
        return association
    if draft.associations[association].state is ActionState.UNKNOWN:
        return Ignored(
            IgnoredKind.DUPLICATE,
            Text.of("the outcome of {command_id!r} is unknown already", command_id=unknown.command_id),
        )
    on_unknown(draft, association, unknown.reason)
    _settle_if_running(draft)
    return None


def _begun(draft: Draft, begun: Begun) -> Ignored | None:
    association = _open_command(draft, begun.command_id)
    if isinstance(association, Ignored):
        return association
    found = draft.associations[association]
    if found.begun or found.state is not ActionState.DISPATCHED:
        return Ignored(
            IgnoredKind.DUPLICATE, Text.of("command {command_id!r} has begun already", command_id=begun.command_id)
        )
    draft.put(association, replace(found, begun=begun.by))
    return None


def _open_command(draft: Draft, command_id: str, result: Any = None) -> AssociationKey | Ignored:
    """Return the association whose command awaits an outcome, or the reason why there is none for this `result`."""
    found = key_of_command(draft, command_id)
    if found is not None:
        return found
    key = parse_command_id(command_id)
    if key is None or (key.job_id, key.run_id) != (draft.run.job_id, draft.run.run_id):
        return Ignored(IgnoredKind.FOREIGN, Text.of("command {command_id!r} is not of this run", command_id=command_id))
    # An id may escape more characters than ours do.
    found = key_of_command(draft, key.command_id) if key.command_id != command_id else None
    return _ignore_answer(draft, key, result) if found is None else found


def _answer_after_end(net: Net, run: Run, answer: Answer, now: int) -> Advanced | Ignored:
    """Record the answer to a reset that the end of the run has sent; every other answer is late or repeated."""
    draft = Draft(net, run, now)
    association = _open_command(draft, answer.command_id, answer.data)
    if isinstance(association, Ignored):
        return association
    if not draft.associations[association].reset:
        return Ignored(IgnoredKind.LATE, Text.of("the run is {outcome}", outcome=run.outcome.text))
    state = ActionState.COMPLETED if answer.ok else ActionState.FAILED
    ended = ended_association(draft.associations[association], state, now, answer.error)
    draft.put(association, replace(ended, result=answer.data))
    return Advanced(draft.finish(), (), ())


def _keep_late(net: Net, run: Run, late: Late, now: int) -> Advanced | Ignored:
    """Keep a late result with the attempts; an attempt that has a result is answered already."""
    draft = Draft(net, run, now)
    key = parse_command_id(late.command_id)
    if key is None or (key.job_id, key.run_id) != (run.job_id, run.run_id):
        return Ignored(
            IgnoredKind.FOREIGN, Text.of("command {command_id!r} is not of this run", command_id=late.command_id)
        )
    actions = (net.resetting if key.reset else net.starting).get(key.action, ())
    if not actions:
        return Ignored(IgnoredKind.FOREIGN, Text.of("the recipe has no action {action!r}", action=key.action))
    state = ActionState.COMPLETED if late.error is None else ActionState.FAILED
    association = Association(
        action=key.action,
        step=actions[0].step,
        state=state,
        attempt=key.attempt,
        reset=key.reset,
        armed_at=now,
        ended_at=now,
        result=late.data,
        error=late.error,
    )
    draft.remember(association, late=True)
    return Advanced(draft.finish(), (), ())


def _ignore_answer(draft: Draft, key: CommandKey, result: Any) -> Ignored:
    """Return the reason why an answer that matches no open command is ignored; a further result is late."""
    label = Text.of("answer to attempt {attempt} of action {action!r}", attempt=key.attempt, action=key.action)
    if not 0 < key.attempt <= draft.attempts(key.action, reset=key.reset):
        return Ignored(IgnoredKind.FOREIGN, Text.of("{label}: no such command was sent", label=label))
    actions = (draft.net.resetting if key.reset else draft.net.starting)[key.action]
    current = [draft.associations[action.key] for action in actions if action.key in draft.associations]
    # What came late answered nothing.
    past = [
        past_attempt
        for past_attempt in draft.past.values()
        if past_attempt.action == key.action and not past_attempt.late
    ]
    every: list[Association | PastAttempt] = [*current, *past]
    same = [attempt for attempt in every if (attempt.attempt, attempt.reset) == (key.attempt, key.reset)]
    answered = [attempt for attempt in same if attempt.state in _ANSWERED]
    if not answered:
        return Ignored(IgnoredKind.LATE, Text.of("{label}: no command waits for it any more", label=label))
    if result is not None and all(attempt.result != result for attempt in answered):
        return Ignored(IgnoredKind.LATE, Text.of("{label}: it is answered already, with another result", label=label))
    return Ignored(IgnoredKind.DUPLICATE, Text.of("{label}: it is answered already", label=label))


_ANSWERED: Final = frozenset({ActionState.COMPLETED, ActionState.FAILED})


def _event(draft: Draft, event: Event) -> Ignored | None:
    pulling = draft.net.pulling.get(event.type_id, ())
    label = Text.of("event {event_id!r} of type {type_id!r}", event_id=event.id, type_id=event.type_id)
    taken = [draft.associations[action.key].event_id for action in pulling if action.key in draft.associations]
    if event.id and (event.id in taken or any(kept_event.id == event.id for kept_event in draft.early.values())):
        return Ignored(IgnoredKind.DUPLICATE, Text.of("{label} was seen before", label=label))
    waiting = [
        (association.armed_at or 0, action.index, action.key)
        for action in pulling
        if (association := draft.associations.get(action.key)) and association.state is ActionState.WAITING
    ]
    if waiting:
        draft.taken = min(waiting)[2]
        on_completed(draft, draft.taken, event.data, event.id)
        _settle_if_running(draft)
        return None
    if not event.named:
        return Ignored(IgnoredKind.NOT_WAITING, Text.of("{label}: the job does not wait for it", label=label))
    if not pulling:
        return Ignored(
            IgnoredKind.FOREIGN, Text.of("{label}: no action of the recipe waits for this type", label=label)
        )
    if len(draft.early) >= MAX_EARLY_EVENTS:
        return Ignored(
            IgnoredKind.TOO_MANY,
            Text.of(
                "{label}: {max_early_events} early events are kept already",
                label=label,
                max_early_events=MAX_EARLY_EVENTS,
            ),
        )
    number = max(draft.early, default=0) + 1
    draft.early[number] = KeptEvent(event.type_id, event.id, event.data)
    draft.touched.add(("early", number))
    return None


def _tick(draft: Draft) -> Ignored | None:
    """Catch up with time: timer by timer, so that a late Tick finds what punctual ones would have found."""
    if draft.paused_at is not None:
        return Ignored(IgnoredKind.PAUSED, "the clocks of the run stand still")
    changed_at = _changed_at(draft) if draft.tested_at < 0 else 0
    while draft.outcome is Outcome.RUNNING:
        instant = min((*_timers(draft), *_wakes(draft, changed_at)), default=None)
        if instant is None or instant > draft.now:
            break
        draft.at = instant
        _process_timers(draft, instant)
        settle(draft)
    draft.at = draft.now
    _settle_if_running(draft)
    return None


def _wakes(draft: Draft, changed_at: int) -> list[int]:
    """Return the instants at which time alone may have cleared a transition since the run was tested or changed.

    A condition that depends on more than the run is tested as of now: nothing says what it was.
    """
    if not draft.net.unsteady.isdisjoint(draft.active):
        return []
    return wakes_after(draft, draft.active, max(draft.tested_at, changed_at))


def _changed_at(draft: Draft) -> int:
    """Return the last instant at which a run that was read from the store is known to have changed."""
    changes = [state.activated_at for state in draft.steps.values()]
    changes += [
        at
        for association in draft.associations.values()
        for at in (association.armed_at, association.ended_at)
        if at is not None
    ]
    changes += [attempt.ended_at for attempt in draft.past.values() if attempt.ended_at is not None]
    return max(changes, default=0)


def _granted(draft: Draft, granted: Granted) -> Ignored | None:
    added = set(draft.locks.missing).intersection(granted.locks)
    if not added:
        return Ignored(
            IgnoredKind.NOT_WAITING, Text.of("the run does not wait for {locks}", locks=", ".join(granted.locks))
        )
    draft.locks = replace(draft.locks, held=tuple(sorted(added.union(draft.locks.held))))
    _settle_if_running(draft)
    return None


def _timers(draft: Draft) -> Iterator[int]:
    if draft.locks.deadline is not None and not stands(draft.net, draft):
        yield draft.locks.deadline
    for key in draft.open:
        association = draft.associations[key]
        yield from (instant for instant in (association.due, association.deadline) if instant is not None)


def _process_timers(draft: Draft, instant: int) -> None:
    """Process due timers; a duration that ends together with a deadline comes first: reaching T is not a failure."""
    for key in draft.in_recipe_order(draft.open):
        due = draft.associations[key].due
        if due is not None and due <= instant:
            on_duration_elapsed(draft, key)
    for key in draft.in_recipe_order(draft.open):
        deadline = draft.associations[key].deadline
        if deadline is not None and deadline <= instant:
            on_timeout(draft, key)


def _pause(draft: Draft) -> Ignored | None:
    if draft.paused_at is not None:
        return Ignored(IgnoredKind.PAUSED, "the run is paused already")
    draft.paused_at = draft.now
    return None


def _resume(draft: Draft) -> Ignored | None:
    """Shift all clocks by the length of the pause and continue."""
    if draft.paused_at is None:
        return Ignored(IgnoredKind.NOT_PAUSED, "the run is not paused")
    pause = max(0, draft.now - draft.paused_at)
    draft.paused_at = None
    for key in draft.open:
        association = draft.associations[key]
        if association.due is not None or association.deadline is not None:
            due = None if association.due is None else association.due + pause
            deadline = None if association.deadline is None else association.deadline + pause
            draft.associations[key] = replace(association, due=due, deadline=deadline)
            draft.touched.add(("action", key))
    for step in draft.active:
        state = draft.steps[step]
        draft.put_step(step, replace(state, held_ms=state.held_ms + pause))
    if draft.locks.deadline is not None and not stands(draft.net, draft):
        draft.locks = replace(draft.locks, deadline=draft.locks.deadline + pause)
    draft.fresh.update(draft.active)
    settle(draft)
    return None
