"""Tells the MES what became of its jobs: status events, and retained topics that hold how each job stands."""

import asyncio

import msgspec
import structlog

from edge.errors import Unavailable
from edge.links.mqtt import Session, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE, PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobOrderAndState, JobStatusEvent
from edge.model.job_state import is_transition, state_entries
from edge.northbound.topics import Topics
from edge.station.runs import Progress
from edge.store import changes, jobs
from edge.store.changes import Change
from edge.store.client import Store

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
        job = await jobs.load(self._store, change.job_order_id)
        if job is None:
            await self._session.publish(topics.order(change.job_order_id), retain=True)
            await self._session.publish(topics.result(change.job_order_id), retain=True)
        order = job.order if job else JobOrder(job_order_id=change.job_order_id)
        state = state_entries(change.status)
        response = await jobs.load_response(self._store, job) if job else None
        if response:
            response = msgspec.structs.replace(response, job_state=state)
        correlation = job.correlation_id if job else None
        if is_transition(change.cause):
            told = JobStatusEvent(job_order=order, job_state=state, job_response=response)
            # Published again after a crash, an event is known by its id.
            event_id = f"{change.scope}/{change.position}"
            await self._send(topics.events, STATUS_EVENT_TYPE, change.scope, correlation, told, event_id=event_id)
        if job:
            entry = JobOrderAndState(job_order=order, state=state_entries(job.status))
            await self._send(topics.order(job.job_id), JOB_ORDER_TYPE, change.scope, correlation, entry, retain=True)
        if response:
            await self._send(
                topics.result(change.job_order_id),
                JOB_RESPONSE_TYPE,
                change.scope,
                correlation,
                response,
                retain=True,
            )

    async def _publish_progress(self) -> None:
        while True:
            progress = await self._progress.get()
            job = progress.job
            data = {
                "job_id": job.job_id,
                "at": progress.at,
                "steps": [{"step": each.step, "active": each.active} for each in progress.steps],
                "commands": [
                    {
                        "action": each.action,
                        "phase": each.phase,
                        "attempt": each.attempt,
                        "type_id": each.type_id,
                    }
                    for each in progress.requests
                ],
            }
            try:
                await self._send(self._topics[job.scope].data, PROGRESS_TYPE, job.scope, job.correlation_id, data)
            except Unavailable as error:
                logger.debug("progress dropped", job=job.job_id, reason=error.message)

    async def _send(
        self,
        topic: str,
        event_type: str,
        scope: str,
        correlation: str | None,
        data: object,
        *,
        event_id: str = "",
        retain: bool = False,
    ) -> None:
        event = CloudEvent(
            id=event_id or new_id(),
            source=self._source,
            type=event_type,
            subject=scope,
            correlationid=correlation,
            data=data,
        )
        await self._session.send(to_message(event, topic, retain=retain))
