"""Tells the MES what becomes of its jobs: follows their changes to status events and retained topics."""

import asyncio
from collections.abc import Iterable

import structlog

from edge.errors import Refused, Unavailable
from edge.links.mqtt import Session, to_message
from edge.model.isa95 import JobResponse
from edge.northbound.events import look_up, progress_event, status_event
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
_PROGRESS_WAITING = 1000


def publishing(scopes: Iterable[str]) -> str:
    """Name the task that publishes the changes of these scopes: others go on where one hangs."""
    return f"publish changes of {', '.join(scopes)}"


class Publisher:
    """Follows the change streams. What it sent last is in the store: after a restart it goes on from there."""

    def __init__(
        self, store: Store, session: Session, source: str, topics: dict[str, Topics], lifetime_s: int, clock: Clock
    ) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._retained = Retained(store, session, source, topics, lifetime_s, clock, self._retell)
        self._progress: asyncio.Queue[Progress] = asyncio.Queue(_PROGRESS_WAITING)

    async def run(self) -> None:
        """Publish changes until cancelled, where no other instance does; a store or broker that is gone is waited for.

        It may be called again after another instance has published meanwhile.
        """
        self._retained.forget()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_changes(), name=publishing(self._topics))
            tasks.create_task(self._retained.run(), name="keep retained topics")

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
                await self._tell(change, *found)
                noted = await self._retained.put(change.scope, change.job_order_id, *found)
            await changes.save_cursor(self._store, change, noted)
        self._retained.note(change)

    async def _tell(self, change: Change, job: Job | None, response: JobResponse | None) -> None:
        if event := status_event(self._source, change, job, response):
            try:
                await self._session.send(to_message(event, self._topics[change.scope].events))
            except Refused as refusal:
                # To try it for ever would keep all other changes from being told.
                logger.error("change cannot be told", job=change.job_order_id, reason=refusal.message)  # noqa: TRY400

    async def _retell(self, lost: Lost) -> None:
        """Tell again what was told, under the same ids, and retain again what it made of the jobs."""
        async for change in changes.between(self._store, lost.scope, lost.after, lost.last):
            if found := await look_up(self._store, change):
                self._session.demand(lost.connection)
                await self._tell(change, *found)
                await self._store.commit(await self._retained.put(change.scope, change.job_order_id, *found))

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
