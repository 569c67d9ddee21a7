"""Tells the MES what becomes of the jobs of a scope: follows their changes to status events and retained topics.

A broker that comes back with an older index than ours has lost what was told since, and is told it again; one that has
none gets all there is. Nobody gets more than was lost: a broker drops what a MES cannot take as fast as it comes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from edge.errors import Refused, Unavailable
from edge.instant import Clock
from edge.links.mqtt import MqttSession, to_message
from edge.links.mqtt_connection import ReadRefused
from edge.model.isa95 import JobResponse
from edge.northbound.events import load_changed_job, progress_event, status_event
from edge.northbound.job_states import JobStates
from edge.northbound.retained_topics import NO_INDEX, RetainedTopics, read_index
from edge.northbound.topic_writer import TopicWriter
from edge.northbound.topics import Topics
from edge.station.runs import Progress
from edge.store import changes, jobs
from edge.store.changes import BEGINNING, Change
from edge.store.client import Store
from edge.store.commit import Commit, join
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

INDEX_INTERVAL_S = 0.05
"""The shortest time between two indexes: what happens within it is told at once."""
_INDEX_BYTES_PER_S = 2_000_000
"""An index of very many jobs is published less often, or it would be all that the line carries."""
_RENEWALS_PER_LIFETIME = 3
"""How often in their lifetime topics are published again: a broker may lose one of those."""
_RETRY_S = 1.0
RETRY_REFUSED_S = 60.0
"""How long what the broker refuses is left alone: somebody has to change its access rules first."""
_HEARTBEAT_S = 5.0
"""How often who waits for the other tells that he goes on."""
_PROGRESS_QUEUE_SIZE = 1000


def publish_task_name(scope: str) -> str:
    """Name the task that publishes the changes of a scope: that of another goes on where it hangs."""
    return f"publish changes of {scope}"


class Publisher:
    """Follows the changes of a scope. What it sent last is in the store: after a restart it goes on from there."""

    def __init__(
        self,
        store: Store,
        session: MqttSession,
        source: str,
        topics: Topics,
        lifetime_s: int,
        clock: Clock,
        retry_refused_s: float = RETRY_REFUSED_S,
    ) -> None:
        self._store = store
        self._session = session
        self._source = source
        self._topics = topics
        self._scope = topics.scope
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._retry_refused_s = retry_refused_s
        self._writer = TopicWriter(session, topics)
        self._retained = RetainedTopics(store, self._writer, source, topics, lifetime_s)
        self._progress: asyncio.Queue[Progress] = asyncio.Queue(_PROGRESS_QUEUE_SIZE)
        self._lock = asyncio.Lock()
        self._awake = asyncio.Event()
        self._states: JobStates | None = None
        self._told = BEGINNING
        """The last change whose event is out, and those of all before it."""
        self._held = False
        """Whether the broker refuses events: none goes out before those that wait."""
        self._index_due = False
        self._topics_due = False
        self._checked = 0
        session.listeners.append(self._wake)

    def refused(self) -> list[str]:
        """Return the topics that the broker refuses now, those of jobs without the job."""
        return sorted(self._writer.refused)

    async def run(self) -> None:
        """Publish changes until cancelled, where no other instance does; a store or broker that is gone is waited for.

        It may be called again after another instance has published meanwhile, and has not come to its end.
        """
        self._checked = 0
        self._states = None
        self._held = self._index_due = False
        self._retained.refused = None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_changes(), name=publish_task_name(self._scope))
            tasks.create_task(self.keep_retained(), name="keep retained topics")
            tasks.create_task(self._try_refused(), name="try refused topics again")

    def watch(self, progress: Progress) -> None:
        """Take the progress of a run; while the broker is away the newest are dropped, the store misses nothing."""
        if progress.loaded.job.scope == self._scope and not self._progress.full():
            self._progress.put_nowait(progress)

    async def run_progress(self) -> None:
        """Publish the progress of the runs of this instance, until cancelled."""
        while True:
            progress = await self._progress.get()
            try:
                # It may be missed, so nobody waits for the broker to confirm it.
                await self._session.send(to_message(progress_event(self._source, progress), self._topics.data), qos=0)
            except (Unavailable, Refused) as error:
                logger.debug("progress dropped", job=progress.loaded.job.job_id, reason=error.message)

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Hold from reading a job to publishing it, so that nobody publishes later what they have read before."""
        while not await self._is_held():
            # A broker that is told very much again keeps the other waiting for long: that one does not hang.
            self._store.heartbeat.beat()
        try:
            yield
        finally:
            self._lock.release()

    async def _is_held(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT_S):
                return await self._lock.acquire()
        return False

    async def _publish_changes(self) -> None:
        waits = False
        while True:
            try:
                if self._states is None:
                    await self.load()
                position = await self._cursor()
                if await changes.scopes_with_gaps(self._store, {self._scope: position}):
                    logger.warning("changes were missed", scope=self._scope)
                    self._topics_due = True
                    self._awake.set()
                async for change in changes.follow(self._store, {self._scope: position}):
                    await self._publish(change)
                    if waits:
                        logger.info("publishing goes on")
                        waits = False
            except Unavailable as error:
                if not waits:
                    logger.warning("publishing waits", reason=error.message)
                    waits = True
                await asyncio.sleep(_RETRY_S)

    async def load(self) -> None:
        """Read where all jobs stand. Raises Unavailable when the store is gone."""
        position = (await changes.latest(self._store, [self._scope]))[self._scope]
        self._states = JobStates(self._scope, await jobs.load_statuses(self._store, self._scope), position)
        self._index_due = True
        self._awake.set()

    async def _cursor(self) -> str:
        return (await changes.cursors(self._store, [self._scope]))[self._scope]

    async def _publish(self, change: Change) -> None:
        async with self.alone():
            found = await load_changed_job(self._store, change)
            # A broker that came back without what it had must hear that before it hears of this change.
            await self._check()
            noted = Commit()
            if found:
                self._held = self._held or not await self._tell(change, *found)
                noted = await self._retained.put(change.job_order_id, *found)
            if not self._held:
                noted = join((noted, changes.save_event_cursor(self._store.keys, self._scope, change.position)))
                self._told = change.position
            # Before it is noted: when that is done and the answer lost, the change does not come here again.
            if self._states:
                self._states.apply(change)
            self._index_due = True
            self._awake.set()
            await changes.save_cursor(self._store, change, noted)

    async def _tell(self, change: Change, job: Job | None, response: JobResponse | None) -> bool:
        """Send the event of a change, if it has one; False when the broker refuses it."""
        event = status_event(self._source, change, job, response)
        return event is None or await self._writer.send(to_message(event, self._topics.events))

    async def _retell(self, after: str, last: str, connection: int) -> None:
        """Tell the changes after a position, up to another one, again and under the same ids.

        On that connection only: on another one, more may be lost. Where the broker refuses one, those behind it wait.
        """
        held, told = False, after
        async for change in changes.read_between(self._store, self._scope, after, last):
            if found := await load_changed_job(self._store, change):
                self._session.require_connection(connection)
                if not await self._tell(change, *found):
                    held = True
                    break
            told = change.position
        # Not before: broken off in between, what waits still waits, and none that comes later may go out before it.
        self._held, self._told = held, told if held else last
        await self._store.commit(changes.save_event_cursor(self._store.keys, self._scope, self._told))

    async def _check(self) -> None:
        """Find out, once on each connection and before anything else is published there, what the broker has lost.

        The caller is `alone`. Raises Unavailable when the broker or the store is gone.
        """
        connection = self._session.connection_count
        if connection == self._checked:
            return
        last = await self._cursor()
        expected = await changes.last_index(self._store, self._scope)
        # Before the first index there is nothing to lose.
        found, position = await self._find_index() if expected else NO_INDEX
        await self._retell(position, last, connection)
        if found > expected or await changes.scopes_with_gaps(self._store, {self._scope: position}):
            # It knows of what we do not, or has lost more than the changes go back.
            logger.info("retained topics are published again", scope=self._scope, expected=expected, found=found)
            self._topics_due = True
        elif (found, position) != (expected, last):
            for job_id in await changes.changed_jobs(self._store, self._scope, position, last):
                await self._retained.republish(job_id)
            self._index_due = True
        self._checked = connection

    async def _find_index(self) -> tuple[int, str]:
        """Return number and position of the index that the broker retains.

        Where it keeps that from us, it counts as a broker that lost no more than its index: to tell each time all there
        is, in case it lost that, would flood a MES that has it.
        """
        try:
            message = await self._writer.read_retained(self._topics.state_index)
        except ReadRefused:
            return 0, await changes.event_cursor(self._store, self._scope)
        return read_index(message) if message else NO_INDEX

    async def keep_retained(self) -> None:
        """Publish indexes as they change, and everything a broker has lost, until cancelled."""
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + self._lifetime_s / _RENEWALS_PER_LIFETIME
        while True:
            pause = INDEX_INTERVAL_S
            try:
                await self._sleep(renew_at)
                self._awake.clear()
                if loop.time() >= renew_at:
                    self._topics_due = True
                    renew_at = loop.time() + self._lifetime_s / _RENEWALS_PER_LIFETIME
                async with self.alone():
                    await self._check()
                # The index comes after them all: it would hide what the broker lacks of them.
                while self._topics_due:
                    await self._renew()
                # Where all jobs stand may be read yet: the index comes when it is known.
                if self._index_due and self._states:
                    pause = max(pause, await self._publish_index(self._states) / _INDEX_BYTES_PER_S)
            except Unavailable as error:
                logger.debug("retained topics wait", reason=error.message)
                self._awake.set()
                pause = _RETRY_S
            await asyncio.sleep(pause)

    def _wake(self, _: bool) -> None:  # noqa: FBT001  the signature of a watcher
        self._awake.set()

    async def _sleep(self, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._awake.wait()

    async def _renew(self) -> None:
        # Not at the end: a broker may lose meanwhile what it has got of them, and they are due anew.
        self._topics_due = False
        try:
            known = await changes.retained_jobs(self._store, self._scope)
            for job_id in dict.fromkeys((*await jobs.list_ids(self._store, self._scope), *known)):
                async with self.alone():
                    await self._retained.republish(job_id)
            async with self.alone():
                # A change that is published meanwhile would go into the states that these take the place of.
                await self.load()
        except (Unavailable, asyncio.CancelledError):
            self._topics_due = True
            raise

    async def _publish_index(self, states: JobStates) -> int:
        """Publish the index; give its size in bytes."""
        self._index_due = False
        try:
            seq = await changes.next_index(self._store, self._scope)
            # It would hide what a broker has lost that was not looked at.
            self._session.require_connection(self._checked)
            return await self._retained.publish_index(states.index(seq, self._clock()), self._told)
        except Unavailable:
            self._index_due = True
            raise

    async def _try_refused(self) -> None:
        while True:
            await asyncio.sleep(self._retry_refused_s)
            try:
                if self._held:
                    await self._tell_rest()
                await self._put_refused()
                async with self.alone():
                    if await self._writer.is_readable_again(self._topics.state_index):
                        self._checked = 0
                        self._awake.set()
            except Unavailable as error:
                logger.debug("refused topics wait", reason=error.message)

    async def _tell_rest(self) -> None:
        """Tell the changes that were not told because the broker refused their events, if it takes them now."""
        async with self.alone():
            await self._check()
            await self._retell(self._told, await self._cursor(), self._checked)
        self._index_due = True
        self._awake.set()

    async def _put_refused(self) -> None:
        """Publish again one job of those that were refused; when the broker takes it, all the others too."""
        self._index_due = self._index_due or self._topics.state_index in self._writer.refused
        if job_id := self._retained.refused:
            self._retained.refused = None
            try:
                async with self.alone():
                    await self._retained.republish(job_id)
            finally:
                self._topics_due = self._topics_due or self._retained.refused is None
        self._awake.set()
