"""Publish the retained topics of a scope: each job order, each result, and the index of all states.

A MES that was disconnected reads everything from them. The index names the last change published before it: a
broker that returns with an older index has lost every change after that one.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType

import msgspec
import structlog
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.links.mqtt import Message, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE, STATE_INDEX_TYPE
from edge.model.isa95 import JobOrderAndState, JobResponse
from edge.model.job_message import StateIndex
from edge.model.job_state import has_ended, state_entries
from edge.northbound.topics import StartedWrite, Topics, TopicWriter, WriteOutcome
from edge.station.retention import Deliveries
from edge.store import changes, jobs, responses
from edge.store.background import Isolated
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.generation import GENERATION
from edge.store.jobs import Job
from edge.store.reads import BEGINNING, position_key


class IndexState(Struct, frozen=True):
    """The number of a state index, and the position of the last change published before it.

    `generation` is that of the store behind Sentinel: in another one the jobs may stand where they stood before.
    """

    seq: int
    position: str
    generation: str = ""


class DueTopics(Enum):
    """The retained topics of jobs that have to be published again."""

    NONE = auto()
    CHANGED = auto()
    """Those of jobs that changed after the position of the broker."""
    ALL = auto()


class RepublishPlan(Struct, frozen=True):
    """What a broker lacks; `events_after` is the position after which status events are published again."""

    events_after: str
    topics: DueTopics
    index: bool


def plan_republish(broker: IndexState, ours: IndexState, *, has_gap: bool) -> RepublishPlan:
    """Return what a broker lacks that retains the index `broker`, where `ours` was published last.

    `has_gap` says that changes after the position of the broker are no longer in the change stream.
    """
    if broker.seq > ours.seq or broker.generation != ours.generation or has_gap:
        # Its index is unknown to us, or it lost more than the change stream covers.
        return RepublishPlan(broker.position, DueTopics.ALL, index=True)
    if broker == ours:
        return RepublishPlan(broker.position, DueTopics.NONE, index=False)
    return RepublishPlan(broker.position, DueTopics.CHANGED, index=True)


logger = structlog.get_logger(__name__)

_POSITION = "position"
"""The CloudEvents extension of an index that names the last change published before it."""
NO_INDEX = IndexState(0, BEGINNING)
"""The index of a broker that retains none."""


class PublishedTopics(Struct, frozen=True):
    """The result of publishing the topics of a job: a commit, and whether its result has a subscriber."""

    noted: Commit
    is_result_read: bool = False


class StartedTopics(Struct, frozen=True):
    """The topics of a job on their way to the broker; `is_removal`: they are emptied."""

    job_order_id: str
    is_removal: bool
    writes: Sequence[StartedWrite]


class RetainedTopics:
    """The retained topics of a scope; each lasts for `lifetime_s`.

    `refused_job` is the id of a job whose topics the broker refused. Once it accepts them, it may
    accept the others too.
    """

    def __init__(
        self, store: Store, writer: TopicWriter, source: str, topics: Topics, lifetime_s: int, deliveries: Deliveries
    ) -> None:
        self._store = store
        self._writer = writer
        self._source = source
        self._topics = topics
        self._lifetime_s = lifetime_s
        self._deliveries = deliveries
        self.refused_job: str | None = None

    async def put(self, job_order_id: str, job: Job | None, response: JobResponse | None) -> PublishedTopics:
        """Publish the topics of a job, or empty them. Raises Unavailable when the broker is unavailable."""
        return await self.finish(await self.start(job_order_id, job, response))

    async def start(self, job_order_id: str, job: Job | None, response: JobResponse | None) -> StartedTopics:
        """Send the topics of a job without waiting for the broker. Raises Unavailable when it is unavailable."""
        writes = [await self._writer.start(message) for message in self._messages(job_order_id, job, response)]
        return StartedTopics(job_order_id, job is None, writes)

    async def finish(self, started: StartedTopics) -> PublishedTopics:
        """Wait until the broker has the topics of a job. Raises Unavailable when the broker is unavailable."""
        job_order_id = started.job_order_id
        result_topic, is_result_read = self._topics.result(job_order_id), False
        for write in started.writes:
            outcome = await write.outcome()
            if outcome is WriteOutcome.REFUSED:
                self.refused_job = job_order_id
            if write.message.topic == result_topic and write.message.payload:
                is_result_read = outcome is WriteOutcome.READ
        noted = changes.remove_retained_job if started.is_removal else changes.add_retained_job
        return PublishedTopics(noted(self._store.keys, self._topics.scope, job_order_id), is_result_read)

    async def republish(self, job_order_id: str) -> bool:
        """Publish the topics of a job as stored now; return whether its result had a subscriber.

        Raises Unavailable when the broker or the store is unavailable.
        """
        with Isolated(logger, "topics of a job not published", scope=self._topics.scope, job=job_order_id):
            job = await jobs.load(self._store, job_order_id)
            response = await responses.load(self._store, job) if job else None
            published = await self.put(job_order_id, job, response)
            await self._store.commit(published.noted)
            if job and published.is_result_read:
                await self._deliveries.confirm(job)
            return published.is_result_read
        return False

    async def publish_index(self, index: StateIndex, position: str) -> int:
        """Publish an index and the last change published before it; return its size in bytes.

        Raises Unavailable when the broker is unavailable.
        """
        extensions = {_POSITION: position}
        if generation := self._store.keys.generation_id:
            extensions[GENERATION] = generation
        message = self._retaining(self._topics.state_index, STATE_INDEX_TYPE, index, None, extensions)
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
            job_response = msgspec.structs.replace(response, job_state=state)
            yield self._retaining(result, JOB_RESPONSE_TYPE, job_response, job)
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


def read_index(message: Message) -> IndexState:
    """Return the number of an index, and the position of the last change published before it."""
    try:
        event = to_event(message)
        position = event.extensions.get(_POSITION, BEGINNING)
        position_key(position)
        generation = event.extensions.get(GENERATION, "")
        return IndexState(msgspec.convert(event.data, StateIndex).seq, position, generation)
    except (Refused, msgspec.ValidationError, ValueError):
        # The message is not an index of ours.
        return NO_INDEX
