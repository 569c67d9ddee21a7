"""Updates the OPC UA lists from the store and publishes every change of a job's state."""

import asyncio
import contextlib
import functools
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec
import structlog

from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.instant import utc
from edge.model.isa95 import JobOrder, JobOrderAndState, JobResponse, JobStatusEvent, State
from edge.model.job_state import has_ended, has_response, is_transition, state_entries
from edge.station.response import job_response
from edge.station.settings import follow_settings
from edge.store import changes, jobs, resources, responses
from edge.store.background import Isolated, restart_on_outage
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from edge.uaserver.live_list import BUNDLE_S
from edge.uaserver.server import UaServer

logger = structlog.get_logger(__name__)


IDLE_S = 5.0
"""How long changes are collected while no client has a session, in seconds: most jobs are then read once."""


async def show_jobs(store: Store, server: UaServer, scopes: Sequence[str], idle_s: float = IDLE_S) -> None:
    """Show every job of the scopes; publish its changes until cancelled; wait while the store is unavailable."""
    lists = _JobLists(store, server, scopes, idle_s)
    server.follow_jobs(refresh=lists.refresh, prepare=lists.prepare, note_session=lists.note_session)

    async def show_settings(changed: str) -> None:
        for scope in scopes:
            if changed in {"", scope}:
                await show_work_masters(store, server, scope)

    settings = functools.partial(follow_settings, store, [show_settings])
    async with background_task(restart_on_outage("OPC UA settings", settings), "OPC UA settings"):
        await restart_on_outage("OPC UA lists", lists.follow)


class _JobLists:
    """The lists of the server, and the changed jobs that they do not show: nothing is read before a client looks."""

    def __init__(self, store: Store, server: UaServer, scopes: Sequence[str], idle_s: float) -> None:
        self._store = store
        self._server = server
        self._scopes = scopes
        self._idle_s = idle_s
        self._positions: dict[str, str] = {}
        self._changed: dict[tuple[str, str], None] = {}
        """Scope and id of each job that changed since it was shown."""
        self._is_awaited = asyncio.Event()
        self._showing = asyncio.Lock()
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """One for each job that is being shown."""

    async def refresh(self, scope: str, job_id: str) -> None:
        """Record that a call changed a job; show it to those who monitor the lists."""
        self._changed[scope, job_id] = None
        # The call is committed; the change stream updates the lists when the store is available again.
        with contextlib.suppress(Unavailable):
            await self._show_to_watchers()

    def note_session(self) -> None:
        """End a long wait: a client with a session may monitor events."""
        self._is_awaited.set()

    async def prepare(self) -> None:
        """Show every change before a list is read or monitored."""
        self._is_awaited.set()
        # While the store is unavailable the lists stay as they are for the other clients too.
        with contextlib.suppress(Unavailable):
            if not self._server.is_watched:
                await self._note_newest()
            await self._show_changed()

    async def _note_newest(self) -> None:
        """Record the changes that `follow` has not read yet."""
        newest = await changes.latest(self._store, self._scopes)
        for scope, position in dict(self._positions).items():
            for job_id in await changes.changed_jobs(self._store, scope, position, newest[scope]):
                self._changed[scope, job_id] = None

    async def follow(self) -> None:
        """Record all jobs, then every change, without end. Raises Unavailable when the store is unavailable."""
        # The positions are read before the jobs, so that no change during the reading is lost.
        self._positions.update(self._positions or await changes.latest(self._store, self._scopes))
        for scope in self._scopes:
            # It also holds the jobs that the store lost during its outage.
            for job_id in (*self._server.shown(scope), *await jobs.list_ids(self._store, scope)):
                self._changed[scope, job_id] = None
        await self._show_to_watchers()
        async for batch in changes.follow_in_batches(self._store, self._positions):
            await self._note(batch)
            await self._show_to_watchers()
            self._positions.update({change.scope: change.position for change in batch})
            # A job changes several times in a row: it is read once. A full batch has a successor already.
            if len(batch) < changes.BATCH:
                await self._collect()

    async def _note(self, batch: Sequence[Change]) -> None:
        for change in batch:
            if change.is_removal or has_ended(change.status):
                # Its feed sees a job that another instance has ended up to a second later.
                self._server.charts.hide(change.scope, change.job_order_id)
            if is_transition(change.cause) and self._server.has_event_listeners(change.scope):
                # A client that receives the event reads the lists next.
                job = await self._show(change.scope, change.job_order_id)
                await _publish_event(self._store, self._server, change, job)
            else:
                self._changed[change.scope, change.job_order_id] = None

    async def _show_to_watchers(self) -> None:
        if self._server.is_watched:
            await self._show_changed()

    async def _show_changed(self) -> None:
        # Who finds nothing to show waits until the others have shown it.
        async with self._showing:
            while self._changed:
                scope, job_id = next(iter(self._changed))
                del self._changed[scope, job_id]
                try:
                    await self._show(scope, job_id)
                except Unavailable:
                    self._changed[scope, job_id] = None
                    raise

    async def _collect(self) -> None:
        """Wait while changes come together; a session and a read of a list end a long wait."""
        self._is_awaited.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BUNDLE_S if self._server.sessions else self._idle_s):
                await self._is_awaited.wait()

    async def _show(self, scope: str, job_id: str) -> Job | None:
        """Show the current state of a job and return the job; None when it is removed or unreadable.

        An unreadable job stays in the lists unchanged. The feed, an answer and a new session may show one job at the
        same time: each reads it after the one before has shown it, so that none shows an older state or a removed job.
        """
        turn = self._turns.setdefault((scope, job_id), asyncio.Lock())
        with Isolated(logger, "job not shown", scope=scope, job=job_id):
            async with turn:
                return await self._show_readable(scope, job_id)
        return None

    async def _show_readable(self, scope: str, job_id: str) -> Job | None:
        job = await jobs.load(self._store, job_id)
        if job is None or has_ended(job.status):
            self._server.charts.hide(scope, job_id)
        if job is None:
            self._server.hide(scope, job_id)
            return None
        state = state_entries(job.status)
        # Both lists show the same state of a job, even if it changed between two reads (OPC 10031-4, 6.2.7.1).
        response = await _response_in(self._store, job, state) if has_response(job.status) else None
        self._server.show(scope, JobOrderAndState(job_order=job.order, state=state), response)
        return job


async def show_work_masters(store: Store, server: UaServer, scope: str) -> None:
    """Show the current work masters and allowed resources of a scope."""
    await server.show_allowed(scope, await resources.load_allowed(store, scope))
    server.work_masters(scope, await resources.load_work_masters(store, scope))


async def _publish_event(store: Store, server: UaServer, change: Change, job: Job | None) -> None:
    state = state_entries(change.status)
    status_event = JobStatusEvent(
        job_order=job.order if job else JobOrder(job_order_id=change.job_order_id),
        job_state=state,
        job_response=await _response_in(store, job, state) if job else None,
    )
    await server.publish_event(change.scope, status_event, utc(change.at))


async def _response_in(store: Store, job: Job, state: tuple[State, ...]) -> JobResponse:
    """Return the response of a job; before its start the store holds none, and a new one is built."""
    response = await responses.load(store, job) if has_response(job.status) else None
    return msgspec.structs.replace(response or job_response(job, None), job_state=state)
