"""Derives the events of a job from its change stream and from two states of its run."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import IntEnum
from typing import Any, TypeAlias, assert_never

import msgspec

from edge.chart.marks import SYMBOLS
from edge.cli.jobs.table import state_text
from edge.cli.terminal.fitted_table import utc_time
from edge.cli.terminal.output import printable
from edge.foundation.instant import local
from edge.model.job_state import has_ended
from edge.sfc.run import ActionState, Association, Run, StepState
from edge.store.changes import Change
from edge.store.jobs import Job


class _JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Fields of every event; instants have the time zone UTC."""

    at: datetime | None
    job_order_id: str


class StateChanged(_JobEvent, frozen=True, kw_only=True, tag="state"):
    """The job entered a state or was removed; `cause` is the method or event, None for the first state seen."""

    scope: str
    state: str
    cause: str | None = None


class StepChanged(_JobEvent, frozen=True, kw_only=True, tag="step"):
    """A step became active for the `count`-th time, or inactive."""

    step: str
    active: bool
    count: int


class ActionChanged(_JobEvent, frozen=True, kw_only=True, tag="action"):
    """An action was sent, answered, stopped or timed out."""

    action: str
    step: str
    state: ActionState
    attempt: int
    result: Any = None
    error: str | None = None


JobEvent: TypeAlias = StateChanged | StepChanged | ActionChanged


def initial_state(job: Job) -> StateChanged:
    """Return the state of a job at the start of watching."""
    at = job.ended_at or job.started_at or job.stored_at
    return StateChanged(at=utc_time(at), job_order_id=job.job_id, scope=job.scope, state=state_text(job.status))


def from_change(change: Change) -> StateChanged:
    """Return the event of a change."""
    return StateChanged(
        at=utc_time(change.at),
        job_order_id=change.job_order_id,
        scope=change.scope,
        state="removed" if change.is_removal else state_text(change.status),
        cause=change.cause,
    )


def is_last(change: Change) -> bool:
    """Return whether a change ends the job."""
    return change.is_removal or has_ended(change.status)


def ordered_events(changes: Iterable[Change], before: Run | None, after: Run | None) -> list[JobEvent]:
    """Return the events in order: a job starts before its steps and ends after them."""
    changes = list(changes)
    begins = [from_change(change) for change in changes if not is_last(change)]
    ends = [from_change(change) for change in changes if is_last(change)]
    return [*begins, *(run_events(before, after) if after else ()), *ends]


def run_events(before: Run | None, after: Run) -> list[JobEvent]:
    """Return the events of steps and actions in the order of time."""
    past_steps, past_actions = (before.steps, before.associations) if before else ({}, {})
    timed: list[_Timed] = []
    for name, step in after.steps.items():
        timed += _step_events(after.job_id, name, past_steps.get(name, StepState()), step)
    for key, association in after.associations.items():
        past = past_actions.get(key)
        if past is None or (past.state, past.attempt, past.armed_at) != (
            association.state,
            association.attempt,
            association.armed_at,
        ):
            timed.append(_action_event(after.job_id, association))
    return [event for _, _, event in sorted(timed, key=lambda row: row[:2])]


_Timed: TypeAlias = tuple[int, "_Rank", JobEvent]


class _Rank(IntEnum):
    """Order of events at the same instant; a step that is entered and left then is ordered by its entry."""

    ACTION_ENDED = 0
    STEP_LEFT = 1
    STEP_ENTERED = 2
    STEP_PASSED = 2
    ACTION_SENT = 3


def _step_events(job_id: str, name: str, before: StepState, after: StepState) -> Iterator[_Timed]:
    entered = after.count > before.count
    if entered:
        yield (
            after.activated_at,
            _Rank.STEP_ENTERED,
            _step_changed(job_id, name, after, after.activated_at, active=True),
        )
    if not after.active and (entered or before.active):
        left_at = after.activated_at + after.held_ms + after.elapsed_ms
        rank = _Rank.STEP_PASSED if left_at == after.activated_at else _Rank.STEP_LEFT
        yield left_at, rank, _step_changed(job_id, name, after, left_at, active=False)


def _step_changed(job_id: str, name: str, state: StepState, at: int, *, active: bool) -> StepChanged:
    return StepChanged(at=utc_time(at), job_order_id=job_id, step=name, active=active, count=state.count)


def _action_event(job_id: str, item: Association) -> _Timed:
    at, rank = item.armed_at, _Rank.ACTION_SENT
    if item.ended_at is not None and item.ended_at != item.armed_at:
        at, rank = item.ended_at, _Rank.ACTION_ENDED
    event = ActionChanged(
        at=utc_time(at),
        job_order_id=job_id,
        action=item.action,
        step=item.step,
        state=item.state,
        attempt=item.attempt,
        result=item.result,
        error=item.error,
    )
    return at or 0, rank, event


def format_event(event: JobEvent) -> str:
    """Return an event as text: local time, subject, outcome."""
    at = local(event.at).strftime("%H:%M:%S.%f")[:-3] if event.at else ""
    match event:
        case StateChanged():
            cause = f"  by {event.cause}" if event.cause else ""
            what = f"job     {event.job_order_id}  {event.state}{cause}"
        case StepChanged():
            again = f"  for the {event.count}. time" if event.active and event.count > 1 else ""
            what = f"step    {'▶' if event.active else '■'} {event.step}{again}"
        case ActionChanged():
            what = f"action  {SYMBOLS[event.state]} {event.action} of {event.step}: {_outcome(event)}"
        case _:
            assert_never(event)
    return printable(f"{at:12}  {what}")


def _outcome(event: ActionChanged) -> str:
    attempt = f", attempt {event.attempt}" if event.attempt > 1 else ""
    result = "" if event.result is None else f"  {msgspec.json.encode(event.result).decode()}"
    return f"{event.error or event.state}{attempt}{result}"
