"""Keeps the retained topics at what the store holds: each job order, each result, and the index of all states.

A MES that was away reads everything from them. The index says up to which change all was told, topics and status
events: it is published after that. A broker that comes back with an older one has lost what was told since, and is
told it again; one that comes back with none gets all there is. Nobody gets more than was lost: a broker drops what a
MES cannot take as fast as it comes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgspec
import structlog

from edge.errors import Refused, Unavailable
from edge.links.mqtt import Message, Session, to_event, to_message
from edge.model.cloudevent import CloudEvent, new_id
from edge.model.event_types import JOB_ORDER_TYPE, JOB_RESPONSE_TYPE, STATE_INDEX_TYPE
from edge.model.isa95 import JobOrderAndState, JobResponse
from edge.model.job_state import has_ended, state_entries
from edge.model.state_index import StateIndex
from edge.northbound.outlet import Outlet
from edge.northbound.state_index import JobStates
from edge.northbound.topics import Topics
from edge.station.runs import Clock
from edge.store import changes, jobs, responses
from edge.store.changes import BEGINNING, Change, order_of
from edge.store.client import Store
from edge.store.commit import Commit
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

INDEX_EVERY_S = 0.05
"""The shortest time between two indexes: what happens within it is told at once."""
_INDEX_BYTES_PER_S = 2_000_000
"""An index of very many jobs is published less often, or it would be all that the line carries."""
_RENEWALS = 3
"""How often in their lifetime topics are published again: a broker may lose one of those."""
_RETRY_S = 1.0
_BEAT_S = 5.0
"""How often who waits for the other tells that he goes on."""
_POSITION = "position"
"""The CloudEvents extension of an index that names the last change which was told before it."""
_NOTHING = (0, BEGINNING)


@dataclass(frozen=True, slots=True)
class Lost:
    """The changes of a scope that a broker may have lost: those after one position, up to and with another.

    They are told on `connection` only: on another one, more may be lost.
    """

    scope: str
    after: str
    last: str
    connection: int


Retell = Callable[[Lost], Awaitable[str]]
"""Tells changes again, in their order, and gives the last that was told: those behind it, the broker refuses.

Raises Unavailable when the broker or the store is gone.
"""


class Retained:
    """The retained topics of every scope; each lasts for `lifetime_s` and is published again before that is over."""

    def __init__(
        self,
        store: Store,
        session: Session,
        outlet: Outlet,
        source: str,
        topics: Mapping[str, Topics],
        lifetime_s: int,
        clock: Clock,
        retell: Retell,
    ) -> None:
        self._lock = asyncio.Lock()
        self._store = store
        self._session = session
        self._outlet = outlet
        self._source = source
        self._topics = topics
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._retell = retell
        self._states: dict[str, JobStates] = {}
        self._told: dict[str, str] = {}
        self._changed: set[str] = set()
        self._lost: set[str] = set()
        self._refused: dict[str, str] = {}
        """Of each scope a job whose topics the broker refused: when it takes them, the others are published too."""
        self._checked = 0
        self._awake = asyncio.Event()
        session.watchers.append(self._watch)

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
            async with asyncio.timeout(_BEAT_S):
                return await self._lock.acquire()
        return False

    def forget(self) -> None:
        """Let go of what is known: another instance may have published since, and not have come to its end."""
        self._checked = 0
        self._states.clear()
        self._changed.clear()
        self._told.clear()
        self._refused.clear()

    async def load(self) -> None:
        """Read where all jobs stand. Raises Unavailable when the store is gone."""
        for scope in self._topics:
            if scope not in self._states:
                await self._load(scope)

    def lose(self, scope: str) -> None:
        """Have all topics of a scope published again: changes were missed."""
        self._lost.add(scope)
        self._awake.set()

    async def put(self, scope: str, job_order_id: str, job: Job | None, response: JobResponse | None) -> Commit:
        """Publish the topics of a job, or empty them; give what is to be noted of that in the store.

        The caller is `alone`. Raises Unavailable when the broker is gone.
        """
        for message in self._messages(scope, job_order_id, job, response):
            if not await self._outlet.send(message):
                self._refused[scope] = job_order_id
        noted = changes.hidden if job is None else changes.shown
        return noted(self._store.keys, scope, job_order_id)

    def _messages(
        self, scope: str, job_order_id: str, job: Job | None, response: JobResponse | None
    ) -> Iterator[Message]:
        topics = self._topics[scope]
        if job is None:
            yield Message(topics.order(job_order_id), retain=True)
            yield Message(topics.result(job_order_id), retain=True)
            return
        state = state_entries(job.status)
        if response and has_ended(job.status):
            told = msgspec.structs.replace(response, job_state=state)
            yield self._retaining(topics.result(job_order_id), JOB_RESPONSE_TYPE, scope, told, job.correlation_id)
        entry = JobOrderAndState(job_order=job.order, state=state)
        yield self._retaining(topics.order(job_order_id), JOB_ORDER_TYPE, scope, entry, job.correlation_id)

    def note_told(self, scope: str, position: str) -> None:
        """Note that the events up to a position are out: the next index says so."""
        self._told[scope] = position

    async def tell_rest(self, scope: str) -> None:
        """Tell the changes that were not told because the broker refused their events, if it takes them now."""
        async with self.alone():
            await self.check()
            last = (await changes.cursors(self._store, [scope]))[scope]
            self._told[scope] = await self._retell(Lost(scope, self._told[scope], last, self._checked))
        self._changed.add(scope)
        self._awake.set()

    async def try_refused(self) -> None:
        """Publish again one job of each scope that has refused ones; when the broker takes it, all the others too."""
        if not self._outlet.refused and not self._refused:
            return
        self._changed.update(scope for scope, each in self._topics.items() if each.state_index in self._outlet.refused)
        for scope, job_order_id in tuple(self._refused.items()):
            del self._refused[scope]
            try:
                await self._put_again(scope, job_order_id)
            finally:
                if scope not in self._refused:
                    self._lost.add(scope)
        self._awake.set()

    def note(self, change: Change) -> None:
        """Take a change, whose topics are published, into the index."""
        self._states[change.scope].apply(change)
        self._changed.add(change.scope)
        self._awake.set()

    async def run(self) -> None:
        """Publish indexes as they change, and everything a broker has lost, until cancelled."""
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + self._lifetime_s / _RENEWALS
        while True:
            pause = INDEX_EVERY_S
            try:
                await self._sleep(renew_at)
                self._awake.clear()
                if loop.time() >= renew_at:
                    self._lost.update(self._topics)
                    renew_at = loop.time() + self._lifetime_s / _RENEWALS
                async with self.alone():
                    await self.check()
                for scope in tuple(self._lost):
                    await self._renew(scope)
                # Where all jobs stand may be read yet: the index comes when it is known.
                for scope in self._changed & self._states.keys():
                    pause = max(pause, await self._publish_index(scope) / _INDEX_BYTES_PER_S)
            except Unavailable as error:
                logger.debug("retained topics wait", reason=error.message)
                self._awake.set()
                pause = _RETRY_S
            await asyncio.sleep(pause)

    def _watch(self, _: bool) -> None:  # noqa: FBT001  the signature of a watcher
        self._awake.set()

    async def _sleep(self, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._awake.wait()

    async def check(self) -> None:
        """Find out, once on each connection and before anything else is published there, what the broker has lost.

        The caller is `alone`. Raises Unavailable when the broker or the store is gone.
        """
        connection = self._session.connections
        if connection == self._checked:
            return
        for scope, last in (await changes.cursors(self._store, self._topics)).items():
            expected = await changes.last_index(self._store, scope)
            # Before the first index there is nothing to lose.
            message = await self._session.retained(self._topics[scope].state_index) if expected else None
            found, position = _read(message) if message else _NOTHING
            self._told[scope] = await self._retell(Lost(scope, position, last, connection))
            if found > expected or await changes.missed(self._store, {scope: position}):
                # It knows of what we do not, or has lost more than the changes go back.
                logger.info("retained topics are published again", scope=scope, expected=expected, found=found)
                self._lost.add(scope)
            elif (found, position) != (expected, last):
                for job_id in await changes.changed_jobs(self._store, scope, position, last):
                    await self._put_now(scope, job_id)
                self._changed.add(scope)
        self._checked = connection

    async def _load(self, scope: str) -> None:
        self._told.setdefault(scope, (await changes.cursors(self._store, [scope]))[scope])
        position = (await changes.latest(self._store, [scope]))[scope]
        self._states[scope] = JobStates(scope, await jobs.load_statuses(self._store, scope), position)
        self._changed.add(scope)
        self._awake.set()

    async def _renew(self, scope: str) -> None:
        known = await changes.shown_jobs(self._store, scope)
        for job_id in dict.fromkeys((*await jobs.list_ids(self._store, scope), *known)):
            await self._put_again(scope, job_id)
        await self._load(scope)
        self._lost.discard(scope)

    async def _put_again(self, scope: str, job_id: str) -> None:
        async with self.alone():
            await self._put_now(scope, job_id)

    async def _put_now(self, scope: str, job_id: str) -> None:
        try:
            job = await jobs.load(self._store, job_id)
            response = await responses.load(self._store, job) if job else None
            await self._store.commit(await self.put(scope, job_id, job, response))
        except Unavailable:
            raise
        except Exception:
            # One job that nobody can read must not keep the topics of the others from coming back.
            logger.exception("topics of a job are not published again", scope=scope, job=job_id)

    async def _publish_index(self, scope: str) -> int:
        """Publish the index of a scope; give its size in bytes."""
        self._changed.discard(scope)
        try:
            seq = await changes.next_index(self._store, scope)
            # It would hide what a broker has lost that was not looked at.
            self._session.demand(self._checked)
            index = self._states[scope].index(seq, self._clock())
            told = {_POSITION: self._told[scope]}
            topic = self._topics[scope].state_index
            message = self._retaining(topic, STATE_INDEX_TYPE, scope, index, None, told)
            await self._outlet.send(message)
            return len(message.payload)
        except Unavailable:
            self._changed.add(scope)
            raise

    def _retaining(
        self,
        topic: str,
        event_type: str,
        scope: str,
        data: object,
        correlation_id: str | None,
        extensions: Mapping[str, str] = MappingProxyType({}),
    ) -> Message:
        event = CloudEvent(
            id=new_id(),
            source=self._source,
            type=event_type,
            subject=scope,
            correlationid=correlation_id,
            expiryinterval=self._lifetime_s,
            extensions=dict(extensions),
            data=data,
        )
        return to_message(event, topic, retain=True)


def _read(message: Message) -> tuple[int, str]:
    """Give the number of an index, and the position up to which changes were told before it."""
    try:
        event = to_event(message)
        position = event.extensions.get(_POSITION, BEGINNING)
        order_of(position)
        return msgspec.convert(event.data, StateIndex).seq, position
    except (Refused, msgspec.ValidationError, ValueError):
        # Somebody else wrote there.
        return _NOTHING
