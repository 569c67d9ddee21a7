"""Tells the MES what becomes of its jobs: follows their changes to status events and retained topics."""

import asyncio
from collections.abc import Iterable

import structlog

from edge.errors import Refused, Unavailable
from edge.links.mqtt import Session, to_message
from edge.model.isa95 import JobResponse
from edge.northbound.events import look_up, progress_event, status_event
from edge.northbound.outlet import Outlet
from edge.northbound.retained import Lost, Retained
from edge.northbound.topics import Topics
from edge.station.runs import Clock, Progress
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

_RETRY_S = 1.0
RETRY_REFUSED_S = 60.0
"""How long what the broker refuses is left alone: somebody has to change its access rules first."""
_PROGRESS_WAITING = 1000


def publishing(scopes: Iterable[str]) -> str:
    """Name the task that publishes the changes of these scopes: others go on where one hangs."""
    return f"publish changes of {', '.join(scopes)}"


class Publisher:
    """Follows the change streams. What it sent last is in the store: after a restart it goes on from there."""

    def __init__(
        self,
        store: Store,
        session: Session,
        source: str,
        topics: dict[str, Topics],
        lifetime_s: int,
        clock: Clock,
        retry_refused_s: float = RETRY_REFUSED_S,
    ) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._outlet = Outlet(session, topics.values())
        self._retained = Retained(store, session, self._outlet, source, topics, lifetime_s, clock, self._retell)
        self._held: set[str] = set()
        """Scopes whose events the broker refuses: none goes out before those that wait."""
        self._retry_refused_s = retry_refused_s
        self._progress: asyncio.Queue[Progress] = asyncio.Queue(_PROGRESS_WAITING)

    def refused(self) -> list[str]:
        """Give the topics that the broker refuses now, those of jobs without the job."""
        return sorted(self._outlet.refused)

    async def run(self) -> None:
        """Publish changes until cancelled, where no other instance does; a store or broker that is gone is waited for.

        It may be called again after another instance has published meanwhile.
        """
        self._retained.forget()
        self._held.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_changes(), name=publishing(self._topics))
            tasks.create_task(self._retained.run(), name="keep retained topics")
            tasks.create_task(self._try_refused(), name="try refused topics again")

    def watch(self, progress: Progress) -> None:
        """Take the progress of a run; while the broker is away the newest are dropped, the store misses nothing."""
        if progress.job.scope in self._topics and not self._progress.full():
            self._progress.put_nowait(progress)

    async def _publish_changes(self) -> None:
        waits = False
        while True:
            try:
                await self._retained.load()
                positions = await changes.cursors(self._store, self._topics)
                for scope in await changes.missed(self._store, positions):
                    logger.warning("changes were missed", scope=scope)
                    self._retained.lose(scope)
                async for change in changes.follow(self._store, positions):
                    await self._publish(change)
                    if waits:
                        logger.info("publishing goes on")
                        waits = False
            except Unavailable as error:
                if not waits:
                    logger.warning("publishing waits", reason=error.message)
                    waits = True
                await asyncio.sleep(_RETRY_S)

    async def _publish(self, change: Change) -> None:
        async with self._retained.alone():
            found = await look_up(self._store, change)
            # A broker that came back without what it had must hear that before it hears of this change.
            await self._retained.check()
            noted = Commit()
            if found:
                if change.scope not in self._held and not await self._tell(change, *found):
                    self._held.add(change.scope)
                noted = await self._retained.put(change.scope, change.job_order_id, *found)
            await changes.save_cursor(self._store, change, noted)
            if change.scope not in self._held:
                self._retained.note_told(change.scope, change.position)
        self._retained.note(change)

    async def _tell(self, change: Change, job: Job | None, response: JobResponse | None) -> bool:
        """Send the event of a change, if it has one; False when the broker refuses it."""
        event = status_event(self._source, change, job, response)
        return event is None or await self._outlet.send(to_message(event, self._topics[change.scope].events))

    async def _retell(self, lost: Lost) -> str:
        """Tell again what was told, under the same ids.

        Gives the last change that was told: where the broker refuses one, those behind it wait with it.
        """
        self._held.discard(lost.scope)
        told = lost.after
        async for change in changes.between(self._store, lost.scope, lost.after, lost.last):
            if found := await look_up(self._store, change):
                self._session.demand(lost.connection)
                if not await self._tell(change, *found):
                    self._held.add(lost.scope)
                    return told
            told = change.position
        return lost.last

    async def _try_refused(self) -> None:
        while True:
            await asyncio.sleep(self._retry_refused_s)
            try:
                for scope in tuple(self._held):
                    await self._retained.tell_rest(scope)
                await self._retained.try_refused()
            except Unavailable as error:
                logger.debug("refused topics wait", reason=error.message)

    async def run_progress(self) -> None:
        """Publish the progress of the runs of this instance, until cancelled."""
        while True:
            progress = await self._progress.get()
            topic = self._topics[progress.job.scope].data
            try:
                # It may be missed, so nobody waits for the broker to confirm it.
                await self._session.send(to_message(progress_event(self._source, progress), topic), qos=0)
            except (Unavailable, Refused) as error:
                logger.debug("progress dropped", job=progress.job.job_id, reason=error.message)
