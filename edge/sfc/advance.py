"""From a net, a run and a signal to the next run and its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from msgspec.structs import replace

from edge.sfc.action import on_completed, on_duration_elapsed, on_failed, on_timeout
from edge.sfc.command_id import CommandKey, parse_command_id
from edge.sfc.draft import Draft
from edge.sfc.evolve import LivelockError, activate, end, settle
from edge.sfc.run import ActionState, KeptEvent, Outcome, Run
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    Event,
    Ignored,
    IgnoredKind,
    Pause,
    Resume,
    Signal,
    Start,
    Stop,
    Tick,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge.sfc.net import Net

MAX_EARLY_EVENTS: Final = 100


def advance(net: Net, run: Run, signal: Signal, now: int) -> Advanced | Ignored:
    """Decide what a signal changes; `now` is in milliseconds since the Unix epoch.

    Pure and total: the same arguments give the same answer, and no signal in no state raises an exception.
    """
    if run.ended:
        return Ignored(IgnoredKind.ENDED, f"the run is {run.outcome} already")
    if run.started_at is None and not isinstance(signal, (Start, Event, Abort, Stop)):
        return Ignored(IgnoredKind.NOT_STARTED, "the run has not started yet")
    draft = Draft(net, run, now)
    try:
        ignored = _dispatch(draft, signal)
    except LivelockError as error:
        # Nothing of such a decision may be sent: decide again, and only that the run fails.
        draft, ignored = Draft(net, run, now), None
        draft.started_at = draft.started_at if draft.started_at is not None else now
        end(draft, Outcome.FAILED, str(error))
    if ignored is not None:
        return ignored
    return Advanced(draft.finish(), tuple(draft.requests), tuple(draft.changes), draft.taken)


def _dispatch(draft: Draft, signal: Signal) -> Ignored | None:
    match signal:
        case Start():
            return _start(draft)
        case Answer():
            return _answer(draft, signal)
        case Event():
            return _event(draft, signal)
        case Tick():
            return _tick(draft)
        case Pause():
            return _pause(draft)
        case Resume():
            return _resume(draft)
        case Abort(reason=reason):
            end(draft, Outcome.ABORTED, reason or "aborted")
        case Stop(reason=reason):
            end(draft, Outcome.STOPPED, reason or "stopped")
        case _:
            assert_never(signal)
    return None


def _start(draft: Draft) -> Ignored | None:
    if draft.started_at is not None:
        return Ignored(IgnoredKind.STARTED, "the run has started already")
    draft.started_at = draft.now
    activate(draft, draft.net.initial)
    settle(draft)
    return None


def _settle_if_running(draft: Draft) -> None:
    """Let the run move on, unless it is held or over."""
    if draft.paused_at is None and draft.outcome is Outcome.RUNNING:
        settle(draft)


def _answer(draft: Draft, answer: Answer) -> Ignored | None:
    key = parse_command_id(answer.command_id)
    if key is None or (key.job_id, key.run_id) != (draft.run.job_id, draft.run.run_id):
        return Ignored(IgnoredKind.FOREIGN, f"command {answer.command_id!r} is not of this run")
    for association in draft.open:
        each = draft.associations[association]
        if (
            each.state is ActionState.DISPATCHED
            and each.action == key.action
            and each.attempt == key.attempt
            and each.reset == key.reset
        ):
            if answer.ok:
                on_completed(draft, association, answer.data)
            else:
                on_failed(draft, association, f"failed: {answer.error}" if answer.error else "failed")
            _settle_if_running(draft)
            return None
    return _ignore_answer(draft, key)


def _ignore_answer(draft: Draft, key: CommandKey) -> Ignored:
    """Say why an answer that no open command wants is not wanted."""
    told = f"answer to attempt {key.attempt} of action {key.action!r}"
    if not 0 < key.attempt <= draft.attempts(key.action, reset=key.reset):
        return Ignored(IgnoredKind.FOREIGN, f"{told}: no such command was sent")
    for action in (draft.net.resetting if key.reset else draft.net.starting)[key.action]:
        each = draft.associations.get(action.key)
        if each is not None and each.attempt == key.attempt and each.state in _ANSWERED:
            return Ignored(IgnoredKind.DUPLICATE, f"{told}: it is answered already")
    return Ignored(IgnoredKind.LATE, f"{told}: nobody waits for it any more")


_ANSWERED: Final = frozenset({ActionState.COMPLETED, ActionState.FAILED})


def _event(draft: Draft, event: Event) -> Ignored | None:
    pulling = draft.net.pulling.get(event.type_id, ())
    told = f"event {event.id!r} of type {event.type_id!r}"
    taken = [draft.associations[action.key].event_id for action in pulling if action.key in draft.associations]
    if event.id and (event.id in taken or any(kept.id == event.id for kept in draft.early.values())):
        return Ignored(IgnoredKind.DUPLICATE, f"{told} was seen before")
    waiting = [
        (each.armed_at or 0, action.index, action.key)
        for action in pulling
        if (each := draft.associations.get(action.key)) and each.state is ActionState.WAITING
    ]
    if waiting:
        draft.taken = min(waiting)[2]
        on_completed(draft, draft.taken, event.data, event.id)
        _settle_if_running(draft)
        return None
    if not event.named:
        return Ignored(IgnoredKind.NOT_WAITING, f"{told}: the job does not wait for it")
    if not pulling:
        return Ignored(IgnoredKind.FOREIGN, f"{told}: no action of the recipe waits for this type")
    if len(draft.early) >= MAX_EARLY_EVENTS:
        return Ignored(IgnoredKind.TOO_MANY, f"{told}: {MAX_EARLY_EVENTS} early events are kept already")
    number = max(draft.early, default=0) + 1
    draft.early[number] = KeptEvent(event.type_id, event.id, event.data)
    draft.touched.add(f"early:{number}")
    return None


def _tick(draft: Draft) -> Ignored | None:
    """Catch up with time: timer by timer, so that a late Tick finds what punctual ones would have found."""
    if draft.paused_at is not None:
        return Ignored(IgnoredKind.PAUSED, "the clocks of the run stand still")
    while draft.outcome is Outcome.RUNNING:
        instant = min(_timers(draft), default=None)
        if instant is None or instant > draft.now:
            break
        draft.at = instant
        _process_timers(draft, instant)
        settle(draft)
    draft.at = draft.now
    _settle_if_running(draft)
    return None


def _timers(draft: Draft) -> Iterator[int]:
    for key in draft.open:
        each = draft.associations[key]
        yield from (instant for instant in (each.due, each.deadline) if instant is not None)


def _process_timers(draft: Draft, instant: int) -> None:
    """Let pass what is due; a duration that ends together with a deadline comes first: reaching T is no failure."""
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
    """Set all clocks on by the length of the pause and carry on."""
    if draft.paused_at is None:
        return Ignored(IgnoredKind.NOT_PAUSED, "the run is not paused")
    pause = max(0, draft.now - draft.paused_at)
    draft.paused_at = None
    for key in draft.open:
        each = draft.associations[key]
        if each.due is not None or each.deadline is not None:
            due = None if each.due is None else each.due + pause
            deadline = None if each.deadline is None else each.deadline + pause
            draft.associations[key] = replace(each, due=due, deadline=deadline)
            draft.touched.add(f"action:{key}")
    for step in draft.active:
        state = draft.steps[step]
        draft.put_step(step, replace(state, held_ms=state.held_ms + pause))
    draft.fresh.update(draft.active)
    settle(draft)
    return None
