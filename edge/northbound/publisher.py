"""Tells the MES what became of its jobs: status events, and retained topics that hold how each job stands."""

import asyncio

import structlog

from edge.errors import Unavailable
from edge.links.mqtt import Session, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE
from edge.model.isa95 import JobOrderAndState, JobResponse
from edge.model.job_state import state_entries
from edge.northbound.events import look_up, progress_event, status_event
from edge.northbound.topics import Topics
from edge.station.runs import Progress
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

_RETRY_S = 1.0
_PROGRESS_WAITING = 1000


class Publisher:
    """Follows the change streams. What it sent last is in the store: after a restart it goes on from there."""

    def __init__(self, store: Store, session: Session, source: str, topics: dict[str, Topics]) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._progress: asyncio.Queue[Progress] = asyncio.Queue(_PROGRESS_WAITING)

    async def run(self) -> None:
        """Publish until cancelled; a store or broker that is gone is waited for."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_changes(), name="publish changes")
            tasks.create_task(self._publish_progress(), name="publish progress")

    def watch(self, progress: Progress) -> None:
        """Take the progress of a run; while the broker is away the newest are dropped, the store misses nothing."""
        if not self._progress.full():
            self._progress.put_nowait(progress)

    async def _publish_changes(self) -> None:
        waits = False
        while True:
            try:
                positions = await changes.cursors(self._store, self._topics)
                async for change in changes.follow(self._store, positions):
                    await self._publish(change)
                    await changes.save_cursor(self._store, change)
                    if waits:
                        logger.info("publishing goes on")
                        waits = False
            except Unavailable as error:
                if not waits:
                    logger.warning("publishing waits", reason=error.message)
                    waits = True
                await asyncio.sleep(_RETRY_S)

    async def _publish(self, change: Change) -> None:
        topics = self._topics[change.scope]
        job, response = await look_up(self._store, change)
        if job is None:
            await self._session.publish(topics.order(change.job_order_id), retain=True)
            await self._session.publish(topics.result(change.job_order_id), retain=True)
        if event := status_event(self._source, change, job, response):
            await self._session.send(to_message(event, topics.events))
        if job:
            entry = JobOrderAndState(job_order=job.order, state=state_entries(job.status))
            await self._retain(topics.order(job.job_id), JOB_ORDER_TYPE, job, entry)
        if job and response:
            await self._retain(topics.result(job.job_id), JOB_RESPONSE_TYPE, job, response)

    async def _publish_progress(self) -> None:
        while True:
            progress = await self._progress.get()
            topic = self._topics[progress.job.scope].data
            try:
                await self._session.send(to_message(progress_event(self._source, progress), topic))
            except Unavailable as error:
                logger.debug("progress dropped", job=progress.job.job_id, reason=error.message)

    async def _retain(self, topic: str, event_type: str, job: Job, data: JobOrderAndState | JobResponse) -> None:
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=event_type,
            subject=job.scope,
            correlationid=job.correlation_id,
            data=data,
        )
        await self._session.send(to_message(event, topic, retain=True))
