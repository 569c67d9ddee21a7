"""Follows one job until its end, or all jobs until Ctrl-C: a live chart on a terminal, else one line per event."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from edge.cli.jobs import events
from edge.cli.jobs.chart_view import render_job
from edge.cli.jobs.events import JobEvent
from edge.cli.jobs.table import job_table
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import StoreAccess, open_access, open_console, print_json
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.links.background_task import background_task
from edge.model.job_state import JobState, has_ended
from edge.station.stored_job import StoredJob, find, load
from edge.store import changes, jobs
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job

POLL_INTERVAL_S = 0.2
"""Interval of reading the run: steps have no change stream."""

_ROWS_AROUND = 3
"""Terminal rows that the list cannot use: its head, and the prompt."""

Found = asyncio.Queue[Change | Unavailable]


async def watch_job(settings_file: Path | None, job_id: str, *, as_json: bool) -> int:
    """Show a job until its end; return 0, or 1 when it was aborted or removed. Raises Refused and Unavailable."""
    async with open_access(settings_file) as at:
        scope = (await load(at.store, job_id)).job.scope
        screen = open_console()
        async with _changes(at.store, (scope,)) as found:
            if as_json or not screen.is_terminal:
                return await _watch(
                    at.store, job_id, found, lambda _, new_events: _print_events(new_events, as_json=as_json)
                )
            with Live(console=screen, auto_refresh=False) as live:

                def draw(stored: StoredJob | None, _: Iterable[JobEvent]) -> None:
                    if stored:
                        live.update(render_job(stored, now_ms(), screen.width, screen.height), refresh=True)

                return await _watch(at.store, job_id, found, draw)


async def _watch(
    store: Store, job_id: str, found: Found, show: Callable[[StoredJob | None, Iterable[JobEvent]], None]
) -> int:
    seen: StoredJob | None = None
    over = False
    while True:
        changed = [
            change
            for change in await _next_changes(found, POLL_INTERVAL_S if seen else 0)
            if change.job_order_id == job_id
        ]
        stored = await find(store, job_id)
        new_events = events.ordered_events(changed, seen.run if seen else None, stored.run if stored else None)
        was_over, over = over, stored is None or has_ended(stored.job.status)
        if stored and not seen:
            new_events.insert(len(new_events) if over else 0, events.initial_state(stored.job))
        show(stored, new_events)
        # The stream may report the end a moment after the documents.
        if over and (was_over or any(map(events.is_last, changed))):
            last = stored or seen
            return 0 if last and last.job.status.state is JobState.ENDED else 1
        seen = stored or seen


async def watch_all(settings_file: Path | None, scope: str | None, *, as_json: bool) -> None:
    """Show every change of every job of the scopes, until cancelled. Raises Unavailable."""
    async with open_access(settings_file) as at:
        screen = open_console()
        scopes = await at.scopes(scope)
        async with _changes(at.store, scopes) as found:
            if as_json or not screen.is_terminal:
                while True:
                    _print_events(map(events.from_change, await _next_changes(found, None)), as_json=as_json)
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
            print_text(events.format_event(event))


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
