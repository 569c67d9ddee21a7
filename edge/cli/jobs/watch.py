"""Follows one job until its end, or all jobs until Ctrl-C: a live chart on a terminal, else one line per event."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, TypeAlias, assert_never

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from edge.cli.jobs.tables import job_table, state_text
from edge.cli.jobs.waiting import waiting_text
from edge.cli.terminal.output import print_json, print_text, printable
from edge.cli.terminal.store_access import StoreAccess
from edge.cli.terminal.table import open_console
from edge.drawing.marks import SYMBOLS, marks_of
from edge.drawing.reading import read_chart
from edge.drawing.shapes import Drawing, Frame, Label, LineStyle, ShapeRole
from edge.drawing.sheet import MIN_WIDTH, draw_within
from edge.drawing.text import ANSI, chart_text
from edge.foundation.errors import Unavailable
from edge.foundation.instant import local
from edge.foundation.task_group import background_task
from edge.model.instant import Instant, parse_instant, rfc3339
from edge.model.job_state import JobState, has_ended
from edge.sfc.run import ActionState, Association, Run, StepState
from edge.station.clock import store_clock
from edge.station.stored_job import StoredJob, find, load
from edge.store import changes, jobs
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job


class _JobEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Fields of every event; instants have the time zone UTC."""

    at: Instant | None
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
    return StateChanged(at=rfc3339(at), job_order_id=job.job_id, scope=job.scope, state=state_text(job.status))


def from_change(change: Change) -> StateChanged:
    """Return the event of a change."""
    return StateChanged(
        at=rfc3339(change.at),
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
    return StepChanged(at=rfc3339(at), job_order_id=job_id, step=name, active=active, count=state.count)


def _action_event(job_id: str, item: Association) -> _Timed:
    at, rank = item.armed_at, _Rank.ACTION_SENT
    if item.ended_at is not None and item.ended_at != item.armed_at:
        at, rank = item.ended_at, _Rank.ACTION_ENDED
    event = ActionChanged(
        at=rfc3339(at),
        job_order_id=job_id,
        action=item.action,
        step=item.step,
        state=item.state,
        attempt=item.attempt,
        result=item.result,
        error=None if item.error is None else str(item.error),
    )
    return at or 0, rank, event


def format_event(event: JobEvent) -> str:
    """Return an event as text: local time, subject, outcome."""
    at = local(parse_instant(event.at)).strftime("%H:%M:%S.%f")[:-3] if event.at else ""
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


_ROWS_AROUND_CHART = 2
"""Terminal rows that the chart cannot use: the line of the job, and the prompt."""


def render_job(stored: StoredJob, now: int, width: int, height: int) -> RenderableType:
    """Render the chart of a job with its run, whole after its end; before its start, what the job waits for."""
    if not (stored.run and stored.net):
        return Text("\n".join(waiting_text(stored, now)))
    marks = marks_of(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent)
    drawing = draw_within(read_chart(stored.net.recipe), "", marks, max(MIN_WIDTH, width))
    rows = drawing.height if has_ended(stored.job.status) else height - _ROWS_AROUND_CHART
    head = Text(f"{printable(stored.job.job_id)}: {state_text(stored.job.status)}", style="bold")
    return Group(head, *(Text.from_ansi(row, no_wrap=True) for row in visible_rows(drawing, rows)))


def visible_rows(drawing: Drawing, rows: int) -> Iterator[str]:
    """Yield the rows of a chart; of a high chart those around the active steps, and what the job waits for."""
    lines = chart_text(drawing, ANSI)
    if len(lines) <= rows:
        yield from lines
        return
    notes = min(
        (shape.y for shape in drawing.shapes if isinstance(shape, Label) and shape.role is ShapeRole.NOTE), default=0
    )
    waiting = lines[notes:][: rows // 2] if notes else []
    room = max(rows - len(waiting), 1)
    active = [shape.y for shape in drawing.shapes if isinstance(shape, Frame) and shape.style is LineStyle.ACTIVE]
    first = max(0, min(min(active, default=0) - room // 3, len(lines) - room))
    yield from lines[first : first + room]
    yield from waiting


POLL_INTERVAL_S = 0.2
"""Interval of reading the run: steps have no change stream."""

_ROWS_AROUND = 3
"""Terminal rows that the list cannot use: its head, and the prompt."""

Found = asyncio.Queue[Change | Unavailable]


async def watch_job(at: StoreAccess, job_id: str, *, as_json: bool) -> int:
    """Show a job until its end; return 0, or 1 when it was aborted or removed. Raises Refused and Unavailable."""
    scope = (await load(at.store, job_id)).job.scope
    screen = open_console()
    async with _changes(at.store, (scope,)) as found:
        if as_json or not screen.is_terminal:
            return await _watch(
                at.store, job_id, found, lambda _, new_events: _print_events(new_events, as_json=as_json)
            )
        clock = await store_clock(at.store)
        with Live(console=screen, auto_refresh=False) as live:

            def draw(stored: StoredJob | None, _: Iterable[JobEvent]) -> None:
                if stored:
                    live.update(render_job(stored, clock(), screen.width, screen.height), refresh=True)

            return await _watch(at.store, job_id, found, draw)


async def _watch(
    store: Store, job_id: str, found: Found, show: Callable[[StoredJob | None, Iterable[JobEvent]], None]
) -> int:
    stored_job: StoredJob | None = None
    over = False
    while True:
        changed = [
            change
            for change in await _next_changes(found, POLL_INTERVAL_S if stored_job else 0)
            if change.job_order_id == job_id
        ]
        job = await find(store, job_id)
        new_events = ordered_events(changed, stored_job.run if stored_job else None, job.run if job else None)
        was_over, over = over, job is None or has_ended(job.job.status)
        if job and not stored_job:
            new_events.insert(len(new_events) if over else 0, initial_state(job.job))
        show(job, new_events)
        # The stream may report the end a moment after the documents.
        if over and (was_over or any(map(is_last, changed))):
            last = job or stored_job
            return 0 if last and last.job.status.state is JobState.ENDED else 1
        stored_job = job or stored_job


async def watch_all(at: StoreAccess, scope: str | None, *, as_json: bool) -> None:
    """Show every change of every job of the scopes, until cancelled. Raises Unavailable."""
    screen = open_console()
    scopes = await at.scopes(scope)
    async with _changes(at.store, scopes) as found:
        if as_json or not screen.is_terminal:
            while True:
                _print_events(map(from_change, await _next_changes(found, None)), as_json=as_json)
        await _draw_all(at, scopes, found, screen)


async def _draw_all(at: StoreAccess, scopes: Sequence[str], found: Found, screen: Console) -> None:
    shown: dict[str, Job] = {}
    for scope in scopes:
        shown |= {job.job_id: job for job in await jobs.load_all(at.store, scope) if not has_ended(job.status)}
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            room = max(screen.height - _ROWS_AROUND, 1)
            live.update(job_table(list(shown.values())[-room:]), refresh=True)
            for job_id in dict.fromkeys(change.job_order_id for change in await _next_changes(found, None)):
                # The latest change is at the bottom.
                shown.pop(job_id, None)
                if job := await jobs.load(at.store, job_id):
                    shown[job_id] = job


def _print_events(new_events: Iterable[JobEvent], *, as_json: bool) -> None:
    for event in new_events:
        if as_json:
            print_json(event)
        else:
            print_text(format_event(event))


@contextlib.asynccontextmanager
async def _changes(store: Store, scopes: Sequence[str]) -> AsyncIterator[Found]:
    """Follow the changes of scopes from now on; the queue ends with Unavailable when the store fails."""
    found: Found = asyncio.Queue()
    positions = await changes.latest(store, scopes)

    async def follow() -> None:
        try:
            async for change in changes.follow(store, positions):
                found.put_nowait(change)
        except Unavailable as error:
            found.put_nowait(error)

    async with background_task(follow(), "changes of jobs"):
        yield found


async def _next_changes(found: Found, seconds: float | None) -> list[Change]:
    """Wait for a change, at most this long; return all queued changes. Raises Unavailable."""
    changed: list[Change | Unavailable] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            changed.append(await found.get())
    while not found.empty():
        changed.append(found.get_nowait())
    for item in changed:
        if isinstance(item, Unavailable):
            raise item
    return [element for element in changed if isinstance(element, Change)]
