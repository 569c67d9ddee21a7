"""Publish the changes of the jobs of a scope as status events and retained topics.

A broker that returns with an older index has lost the messages since then and gets them again; one without an index
gets everything. No broker gets more than it lost: it drops messages that a MES cannot take as fast as they arrive.

To wait for each PUBACK before the next message would bound the rate by the time of a round trip, or of a broker that
is busy.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable, unwrap_group
from edge.foundation.instant import Clock
from edge.foundation.task_group import TaskGroup
from edge.links.mqtt import Message, MqttSession
from edge.links.mqtt_connection import ReadRefused
from edge.model.isa95 import JobResponse
from edge.model.job_state import has_ended
from edge.northbound.events import StatusEventPublisher, load_changed_job
from edge.northbound.retained_topics import (
    NO_INDEX,
    DueTopics,
    IndexState,
    RetainedTopics,
    StartedTopics,
    plan_republish,
    read_index,
)
from edge.northbound.state_index import JobStates
from edge.northbound.topics import StartedWrite, Topics, TopicWriter
from edge.station.retention import Deliveries, RetentionPolicy
from edge.store import changes, jobs
from edge.store.background import Heartbeat
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, join
from edge.store.jobs import Job
from edge.store.reads import BEGINNING

MOST_CHANGES: Final = 16
"""Changes in flight: with up to three messages each they fill the Receive Maximum of a broker."""
MOST_BYTES: Final = 262_144
"""Payload in flight, by the size of the last changes."""
MOST_CHANGES_PER_S: Final = 800
"""Changes of a backlog: the broker drops what a slower MES does not fetch in time (1,000 by default)."""


class _ComposedChange(Struct, frozen=True):
    """A change with its job and its events; `is_readable` is False for a job that cannot be read."""

    change: Change
    job: Job | None = None
    response: JobResponse | None = None
    events: Sequence[Message] = ()
    is_readable: bool = False


class _StartedChange(Struct, frozen=True):
    """A change whose messages are on their way; `topics` is None for a job that cannot be read."""

    change: Change
    job: Job | None
    events: Sequence[StartedWrite]
    topics: StartedTopics | None

    @property
    def size(self) -> int:
        """The bytes of payload in flight."""
        return sum(len(event.message.payload) for event in (*self.events, *(self.topics.writes if self.topics else ())))


class _FinishedChange(Struct, frozen=True):
    """A change that the broker has; `position` is that of its event, if it was published.

    `noted` is the commit about its topics, `read` its job when the result has a subscriber.
    """

    change: Change
    position: str | None
    noted: Commit = NOTHING
    read: Job | None = None


class ChangeWindow:
    """Publishes the next changes of a scope side by side, and saves how far the broker has confirmed them."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        events: StatusEventPublisher,
        retained: RetainedTopics,
        deliveries: Deliveries,
    ) -> None:
        self._store = store
        self._session = session
        self._events = events
        self._retained = retained
        self._deliveries = deliveries
        self._mean_size = 1

    async def publish(self, waiting: Sequence[Change], connection: int, on_published: Callable[[Change], None]) -> int:
        """Publish the first of the waiting changes on a connection; return how many.

        `on_published` is called with each in its order, before its position is saved: if the reply to that is lost, the
        change is not followed again. Raises Unavailable when the broker or the store is unavailable; what the broker
        had confirmed in order is saved before.
        """
        finished: list[_FinishedChange] = []
        most = max(1, min(MOST_CHANGES, MOST_BYTES // self._mean_size))
        composed = await asyncio.gather(*map(self._compose, waiting[:most]))
        try:
            # One after the other: the order of the messages is that of the changes.
            started = [await self._start(composed_change, connection) for composed_change in composed]
            for started_change in started:
                finished.append(await self._finish(started_change))
                on_published(started_change.change)
        except Unavailable:
            await self._save(finished)
            raise
        await self._save(finished)
        self._mean_size = max(1, sum(change.size for change in started) // len(started))
        return len(finished)

    async def _compose(self, change: Change) -> _ComposedChange:
        found = await load_changed_job(self._store, change)
        if found is None:
            return _ComposedChange(change)
        return _ComposedChange(change, *found, await self._events.compose(change, *found), is_readable=True)

    async def _start(self, composed: _ComposedChange, connection: int) -> _StartedChange:
        # On another connection the broker may have lost messages that come before this one.
        self._session.require_connection(connection)
        change, job = composed.change, composed.job
        if not composed.is_readable:
            return _StartedChange(change, None, (), None)
        events = await self._events.start(composed.events)
        self._session.require_connection(connection)
        return _StartedChange(
            change, job, events, await self._retained.start(change.job_order_id, job, composed.response)
        )

    async def _finish(self, started: _StartedChange) -> _FinishedChange:
        """Wait for the broker."""
        change, job = started.change, started.job
        if started.topics is None:
            return _FinishedChange(change, self._events.skip(change))
        event = await self._events.finish(change, started.events)
        topics = await self._retained.finish(started.topics)
        is_read = has_ended(change.status) and (event.is_read or topics.is_result_read)
        return _FinishedChange(change, event.position, topics.noted, job if is_read else None)

    async def _save(self, finished: Sequence[_FinishedChange]) -> None:
        if not finished:
            return
        # Side by side: one after the other they would bound the rate of ends by the time of a round trip.
        with unwrap_group():
            async with TaskGroup() as tasks:
                for job in (change.read for change in finished if change.read):
                    tasks.create_task(self._deliveries.confirm(job), name=f"note result of {job.order.job_order_id}")
        events = next((change.position for change in reversed(finished) if change.position), None)
        saved = changes.save_cursor(self._store.keys, finished[-1].change, events)
        await self._store.commit(join((saved, *(change.noted for change in finished))))


logger = structlog.get_logger(__name__)

_RENEWALS_PER_LIFETIME = 3
"""Number of times that topics are published again in their lifetime: a broker may lose one of these."""


class PublisherTiming(Struct, frozen=True):
    """The intervals of a publisher, in seconds."""

    index: float = 0.05
    """Shortest time between two indexes: changes within it share one."""
    index_bytes_per_s: int = 2_000_000
    """An index of very many jobs is published less often, to save bandwidth."""
    retry: float = 1.0
    """Pause after the store or the broker was unavailable."""
    retry_refused: float = 60.0
    """Pause before a refused topic, or a result without subscriber, is retried."""
    heartbeat: float = 5.0
    """Interval of the heartbeat while waiting for the lock."""
    read: float = 2.0
    """Time for a retained message to arrive; one that arrives later counts as lost."""
    echo: float = 5.0
    """Time limit for our own message to come back; without it the topic cannot be read, and losses are unknown."""


def publish_task_name(scope: str) -> str:
    """Return the name of the task that publishes the changes of a scope; each scope is watched by itself."""
    return f"publish changes of {scope}"


class _Lock:
    """A lock held from the reading of a job to its publication, so that no task publishes an older state afterwards."""

    def __init__(self, heartbeat: Heartbeat, interval_s: float) -> None:
        self._heartbeat = heartbeat
        self._interval_s = interval_s
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the lock; a task that waits long for it sends its heartbeat meanwhile."""
        while not await self._acquire():
            self._heartbeat.beat()
        try:
            yield
        finally:
            self._lock.release()

    async def _acquire(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._interval_s):
                return await self._lock.acquire()
        return False


class _DueWork:
    """The retained topics that have to be published, and the wake-up of the task that does it."""

    def __init__(self) -> None:
        self.index = False
        self.all_topics = False
        self._awake = asyncio.Event()

    def wake(self, *, index: bool = False, all_topics: bool = False) -> None:
        """Add work, and wake the task."""
        self.index |= index
        self.all_topics |= all_topics
        self._awake.set()

    async def wait(self, until: float) -> None:
        """Wait for work until an instant of the event loop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._awake.wait()
        self._awake.clear()


class Publisher:
    """Follows the changes of a scope. Its cursor is in the store: after a restart it continues from there."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        source: str,
        topics: Topics,
        lifetime_s: int,
        clock: Clock,
        timing: PublisherTiming | None = None,
        policy: RetentionPolicy | None = None,
    ) -> None:
        self._store = store
        self._session = session
        self._topics = topics
        self._scope = topics.scope
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._timing = timing or PublisherTiming()
        self._writer = TopicWriter(session, topics, self._timing.read, self._timing.echo)
        self._events = StatusEventPublisher(store, session, self._writer, source, topics)
        self._deliveries = Deliveries(store, clock, policy or RetentionPolicy(0))
        self._retained = RetainedTopics(store, self._writer, source, topics, lifetime_s, self._deliveries)
        self._window = ChangeWindow(store, session, self._events, self._retained, self._deliveries)
        lock = _Lock(store.heartbeat, self._timing.heartbeat)
        self.exclusive = lock.held
        self._due = _DueWork()
        self._states: JobStates | None = None
        self._checked_connection = 0
        session.listeners.append(lambda _: self._due.wake())

    def refused(self) -> list[str]:
        """Return the topics that the broker refuses now, those of jobs without the job."""
        return sorted(self._writer.refused)

    async def run(self) -> None:
        """Publish changes until cancelled; retry while store or broker are unavailable.

        No other instance may run at the same time. It may be called again after another instance has published.
        """
        self._checked_connection = 0
        self._states = None
        self._events.is_blocked = self._due.index = False
        self._retained.refused_job = None
        async with TaskGroup() as tasks:
            tasks.create_task(self._publish_changes(), name=publish_task_name(self._scope))
            tasks.create_task(self.keep_retained(), name="keep retained topics")
            tasks.create_task(self._retry_refused(), name="retry refused topics")

    async def _publish_changes(self) -> None:
        is_waiting = False
        while True:
            try:
                if self._states is None:
                    await self.load()
                position = await changes.start_position(self._store, self._scope)
                if await changes.scopes_with_gaps(self._store, {self._scope: position}):
                    logger.warning("changes missed", scope=self._scope)
                    self._due.wake(all_topics=True)
                async for batch in changes.follow_in_batches(self._store, {self._scope: position}):
                    await self._publish(batch)
                    if is_waiting:
                        logger.info("publishing continued")
                        is_waiting = False
            except Unavailable as error:
                if not is_waiting:
                    logger.warning("publishing waits", reason=error.message)
                    is_waiting = True
                await asyncio.sleep(self._timing.retry)

    async def load(self) -> None:
        """Read the state of all jobs. Raises Unavailable when the store is unavailable."""
        position = (await changes.latest(self._store, [self._scope]))[self._scope]
        self._states = JobStates(self._scope, await jobs.load_statuses(self._store, self._scope), position)
        self._due.wake(index=True)

    async def _cursor(self) -> str:
        return (await changes.cursors(self._store, [self._scope]))[self._scope]

    async def _publish(self, batch: Sequence[Change]) -> None:
        published = 0
        loop = asyncio.get_running_loop()
        while published < len(batch):
            began = loop.time()
            async with self.exclusive():
                # A broker that lost messages must get them before these changes.
                await self._check()
                count = await self._window.publish(batch[published:], self._checked_connection, self._apply)
            published += count
            if published < len(batch):
                await asyncio.sleep(began + count / MOST_CHANGES_PER_S - loop.time())

    def _apply(self, change: Change) -> None:
        if self._states:
            self._states.apply(change)
        self._due.wake(index=True)

    async def _check(self) -> None:
        """Determine what the broker has lost, once per connection and before any other publication.

        The caller holds the lock. Raises Unavailable when the broker or the store is unavailable.
        """
        connection = self._session.connection_count
        if connection == self._checked_connection:
            return
        last_index, generation = await changes.last_index(self._store, self._scope), self._store.keys.generation_id
        ours = IndexState(last_index, await self._cursor(), generation)
        # Before the first index there is nothing to lose.
        broker = await self._read_index() if ours.seq else IndexState(0, BEGINNING, generation)
        has_gap = bool(await changes.scopes_with_gaps(self._store, {self._scope: broker.position}))
        plan = plan_republish(broker, ours, has_gap=has_gap)
        await self._events.republish(plan.events_after, ours.position, connection)
        match plan.topics:
            case DueTopics.ALL:
                logger.info("retained topics published again", scope=self._scope, expected=ours, found=broker)
                self._due.wake(all_topics=True)
            case DueTopics.CHANGED:
                for job_id in await changes.changed_jobs(self._store, self._scope, broker.position, ours.position):
                    await self._retained.republish(job_id)
            case DueTopics.NONE:
                pass
        self._due.index |= plan.index
        self._checked_connection = connection

    async def _read_index(self) -> IndexState:
        """Return the index that the broker retains.

        A broker that forbids to read it counts as one that lost no more than its index: to publish everything on each
        connection would flood a MES that has it.
        """
        try:
            message = await self._writer.read_retained(self._topics.state_index)
        except ReadRefused:
            position = await changes.event_cursor(self._store, self._scope)
            return IndexState(0, position, self._store.keys.generation_id)
        return read_index(message) if message else NO_INDEX

    async def keep_retained(self) -> None:
        """Publish indexes as they change, and everything a broker has lost, until cancelled."""
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + self._lifetime_s / _RENEWALS_PER_LIFETIME
        while True:
            pause = self._timing.index
            try:
                await self._due.wait(renew_at)
                if loop.time() >= renew_at:
                    self._due.all_topics = True
                    renew_at = loop.time() + self._lifetime_s / _RENEWALS_PER_LIFETIME
                async with self.exclusive():
                    await self._check()
                # The index is published last: before them, it would hide topics that the broker lacks.
                while self._due.all_topics:
                    await self._renew()
                # The states of all jobs may still be loading: the index is published once they are known.
                if self._due.index and self._states:
                    pause = max(pause, await self._publish_index(self._states) / self._timing.index_bytes_per_s)
            except Unavailable as error:
                logger.debug("retained topics wait", reason=error.message)
                self._due.wake()
                pause = self._timing.retry
            await asyncio.sleep(pause)

    async def _renew(self) -> None:
        # Reset first: topics that the broker loses meanwhile are due again.
        self._due.all_topics = False
        try:
            known = await changes.retained_jobs(self._store, self._scope)
            for job_id in dict.fromkeys((*await jobs.list_ids(self._store, self._scope), *known)):
                async with self.exclusive():
                    await self._retained.republish(job_id)
            async with self.exclusive():
                # Under the lock: a change published meanwhile would be applied to the replaced states.
                await self.load()
        except (Unavailable, asyncio.CancelledError):
            self._due.all_topics = True
            raise

    async def _publish_index(self, states: JobStates) -> int:
        """Publish the index; return its size in bytes."""
        self._due.index = False
        try:
            seq = await changes.next_index(self._store, self._scope)
            # On an unchecked connection the index would hide what the broker has lost.
            self._session.require_connection(self._checked_connection)
            return await self._retained.publish_index(states.index(seq, self._clock()), self._events.position)
        except Unavailable:
            self._due.index = True
            raise

    async def _retry_refused(self) -> None:
        while True:
            await asyncio.sleep(self._timing.retry_refused)
            try:
                if self._events.is_blocked:
                    await self._publish_waiting_events()
                await self._retry_topics()
                await self._retry_undelivered()
                async with self.exclusive():
                    if await self._writer.is_readable_again(self._topics.state_index):
                        self._checked_connection = 0
                        self._due.wake()
            except Unavailable as error:
                logger.debug("refused topics wait", reason=error.message)

    async def _publish_waiting_events(self) -> None:
        """Publish the events that the broker refused, if it takes them now."""
        async with self.exclusive():
            await self._check()
            await self._events.republish(self._events.position, await self._cursor(), self._checked_connection)
        self._due.wake(index=True)

    async def _retry_topics(self) -> None:
        """Publish again one job of those that were refused; when the broker takes it, all the others too."""
        self._due.index |= self._topics.state_index in self._writer.refused
        if job_id := self._retained.refused_job:
            self._retained.refused_job = None
            try:
                async with self.exclusive():
                    await self._retained.republish(job_id)
            finally:
                self._due.all_topics |= self._retained.refused_job is None
        self._due.wake()

    async def _retry_undelivered(self) -> None:
        """Publish one undelivered result again; once it has a subscriber, all the others too."""
        while waiting := await self._deliveries.waiting(self._scope, 1):
            async with self.exclusive():
                if not await self._retained.republish(waiting[0]):
                    return
                if await self._deliveries.waiting(self._scope, 1) == waiting:
                    return
