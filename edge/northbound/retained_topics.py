"""Puts the retained topics of a scope: each job order, each result, and the index of all states.

A MES that was away reads everything from them. The index says up to which change all was told before it, topics and
status events: a broker that comes back with an older one has lost what was told since.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec
import structlog

from edge.errors import Refused, Unavailable
from edge.links.mqtt import Message, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE, STATE_INDEX_TYPE
from edge.model.isa95 import JobOrderAndState, JobResponse
from edge.model.job_state import has_ended, state_entries
from edge.model.state_index import StateIndex
from edge.northbound.topic_writer import TopicWriter
from edge.northbound.topics import Topics
from edge.store import changes, jobs, responses
from edge.store.changes import BEGINNING, position_key
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

_POSITION = "position"
"""The CloudEvents extension of an index that names the last change which was told before it."""
NO_INDEX = (0, BEGINNING)
"""Number and position of the index of a broker that retains none."""


class RetainedTopics:
    """The retained topics of a scope; each lasts for `lifetime_s`.

    `refused` is a job whose topics the broker refused: when it takes them, it may take those of the others too.
    """

    def __init__(self, store: Store, writer: TopicWriter, source: str, topics: Topics, lifetime_s: int) -> None:
        self._store = store
        self._writer = writer
        self._source = source
        self._topics = topics
        self._lifetime_s = lifetime_s
        self.refused: str | None = None

    async def put(self, job_order_id: str, job: Job | None, response: JobResponse | None) -> Commit:
        """Publish the topics of a job, or empty them; give what is to be noted of that in the store.

        Raises Unavailable when the broker is gone.
        """
        for message in self._messages(job_order_id, job, response):
            if not await self._writer.send(message):
                self.refused = job_order_id
        noted = changes.remove_retained_job if job is None else changes.add_retained_job
        return noted(self._store.keys, self._topics.scope, job_order_id)

    async def republish(self, job_order_id: str) -> None:
        """Publish the topics of a job as it is stored now. Raises Unavailable when the broker or the store is gone."""
        try:
            job = await jobs.load(self._store, job_order_id)
            response = await responses.load(self._store, job) if job else None
            await self._store.commit(await self.put(job_order_id, job, response))
        except Unavailable:
            raise
        except Exception:
            # One job that nobody can read must not keep the topics of the others from coming back.
            logger.exception("topics of a job are not published again", scope=self._topics.scope, job=job_order_id)

    async def publish_index(self, index: StateIndex, told: str) -> int:
        """Publish an index, and up to which change all was told; give its size in bytes.

        Raises Unavailable when the broker is gone.
        """
        message = self._retaining(self._topics.state_index, STATE_INDEX_TYPE, index, None, {_POSITION: told})
        await self._writer.send(message)
        return len(message.payload)

    def _messages(self, job_order_id: str, job: Job | None, response: JobResponse | None) -> Iterator[Message]:
        order, result = self._topics.order(job_order_id), self._topics.result(job_order_id)
        if job is None:
            yield Message(order, retain=True)
            yield Message(result, retain=True)
            return
        state = state_entries(job.status)
        if response and has_ended(job.status):
            told = msgspec.structs.replace(response, job_state=state)
            yield self._retaining(result, JOB_RESPONSE_TYPE, told, job)
        entry = JobOrderAndState(job_order=job.order, state=state)
        yield self._retaining(order, JOB_ORDER_TYPE, entry, job)

    def _retaining(
        self,
        topic: str,
        event_type: str,
        data: object,
        job: Job | None,
        extensions: Mapping[str, str] = MappingProxyType({}),
    ) -> Message:
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=event_type,
            subject=self._topics.scope,
            correlationid=job.correlation_id if job else None,
            causationid=job.causation_id or None if job else None,
            expiryinterval=self._lifetime_s,
            extensions={**extensions, **(job.trace if job else {})},
            data=data,
        )
        return to_message(event, topic, retain=True)


def read_index(message: Message) -> tuple[int, str]:
    """Return the number of an index, and the position up to which changes were told before it."""
    try:
        event = to_event(message)
        position = event.extensions.get(_POSITION, BEGINNING)
        position_key(position)
        return msgspec.convert(event.data, StateIndex).seq, position
    except (Refused, msgspec.ValidationError, ValueError):
        # Somebody else wrote there.
        return NO_INDEX
