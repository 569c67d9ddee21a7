"""One instance on a shared store: renew its lease, publish where no other does, continue the work of ended ones."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from enum import Enum, auto
from typing import Any

import structlog
from msgspec import Struct

from edge.access.instances import end_token, is_surely_dead, process_token
from edge.foundation.errors import Unavailable
from edge.foundation.listeners import notify
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.station.runs import Runs
from edge.station.sender import take_over
from edge.station.worker import Worker
from edge.store import instance_leases, runs, work
from edge.store.background import Isolated, poll_store, renewal
from edge.store.client import MAX_BLOCK_MS, Store
from edge.store.commit import Commit
from edge.store.lease_watch import JITTER_S, LIFETIME_S, RENEW_EVERY_S, parse_lease

logger = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
_WAIT_FOR_NAME_S = LIFETIME_S + 1.0
_ASK_AGAIN_S = 0.2


TaskFactory = Callable[[], Coroutine[Any, Any, None]]
"""Creates a task that runs until it is cancelled."""


class Gate:
    """A condition, and work that runs only while the condition holds."""

    def __init__(self) -> None:
        self._on = asyncio.Event()
        self._off = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether the condition holds."""
        return self._on.is_set()

    def set_open(self, *, is_open: bool) -> None:
        """Set whether the condition holds."""
        now, no_more = (self._on, self._off) if is_open else (self._off, self._on)
        now.set()
        no_more.clear()

    async def run_while_open(self, work: TaskFactory, name: str) -> None:
        """Run work in a task of that name whenever the gate is open, until cancelled."""
        while True:
            await self._on.wait()
            async with background_task(work(), name):
                await self._off.wait()


class EndedInstance(Struct, frozen=True):
    """An instance whose lease has ended, with the value of that lease; None: it was released or has expired."""

    name: str
    lease: str | None


class Instance:
    """The lease on the name of this instance. Without it the instance does no work, and others take over its work."""

    def __init__(self, store: Store, scopes: Sequence[str]) -> None:
        self.lease_held = Gate()
        """Whether this instance may work: no other instance has its name."""
        self.publisher_gates = {scope: Gate() for scope in scopes}
        """Per scope, whether this instance publishes the changes of its jobs."""
        self.gone: asyncio.Queue[EndedInstance] = asyncio.Queue(1)
        """An instance that is registered for our scopes and whose lease has ended."""
        self.lease_regained: list[Callable[[], None]] = []
        """Called when a lost lease is held again: others may have taken over our work."""
        self.token = process_token()
        self._store = store
        self._scopes = tuple(scopes)
        self._lease = ""
        self._renewed = 0.0
        self._last_gone = ""

    async def enter(self) -> None:
        """Take the lease; wait until the lease of a killed predecessor has ended.

        Raises Unavailable when another instance of that name works.
        """
        name = self._store.consumer
        until = time.monotonic() + _WAIT_FOR_NAME_S
        reported = False
        while not await self._acquire():
            if time.monotonic() > until:
                advice = "Stop it, or set another [gateway] name for this one."
                raise Unavailable(
                    Text.of("another gateway of the name {name!r} works on this store", name=name), advice
                )
            if not reported:
                logger.info("waiting for the end of the lease of this gateway's name", name=name)
                reported = True
            await asyncio.sleep(_ASK_AGAIN_S)
        await self._begin()

    async def _acquire(self) -> bool:
        """Acquire the lease, also from a dead process or after its end; return False while another process holds it."""
        name, former = self._store.consumer, None
        while (holder := await instance_leases.acquire(self._store, name, self.token, former)) is not None:
            has_ended = name in self._store.lease_watch.observe({name: holder})
            if not has_ended and not is_surely_dead(parse_lease(holder).token):
                return False
            former = holder
        return True

    async def run(self) -> None:
        """Renew the lease and read the membership until cancelled; retry while the store is unavailable."""
        await poll_store(self._store.defects, "lease", self._keep_and_look, LOOK_EVERY_S)

    async def _keep_and_look(self) -> None:
        with renewal(Text.of("the lease of the gateway")):
            await self._keep()
        if self.lease_held.is_open:
            await self._look()

    async def leave(self) -> None:
        """Release the lease and the duties that depend on it.

        Where the primary has changed, the lease stays in its successor: this process takes it from there at once.
        """
        end_token(self.token)
        with contextlib.suppress(Unavailable):
            await instance_leases.release_publisher(self._store, self._scopes)
            await instance_leases.release(self._store, self._store.consumer, self.token)

    async def _begin(self) -> None:
        self._renewed = time.monotonic()
        await instance_leases.register(self._store, self._scopes, self._store.consumer)
        self.lease_held.set_open(is_open=True)
        await self._look()

    async def _keep(self) -> None:
        if time.monotonic() - self._renewed < RENEW_EVERY_S - JITTER_S:
            return
        renewed = await instance_leases.renew(self._store, self._store.consumer, self.token, self._lease)
        if renewed is not None:
            self._lease, self._renewed = renewed, time.monotonic()
            return
        if await self._acquire():
            logger.warning("lease lost and acquired again", name=self._store.consumer)
            notify(self.lease_regained)
            await self._begin()
        elif self.lease_held.is_open:
            logger.warning("another gateway of this name works, waiting", name=self._store.consumer)
            self.lease_held.set_open(is_open=False)
            for publishes in self.publisher_gates.values():
                publishes.set_open(is_open=False)

    async def _look(self) -> None:
        membership = await instance_leases.read_membership(self._store, self._scopes, self.token)
        if membership.mine is None:
            self._renewed = 0.0
            return
        self._lease, gone = membership.mine, membership.gone
        for scope, publisher in membership.publishers.items():
            ours = publisher == self._store.consumer
            if publisher is None or publisher in gone:
                ended = gone[publisher] if publisher else None
                ours = await instance_leases.become_publisher(self._store, scope, publisher, ended)
            if ours != self.publisher_gates[scope].is_open:
                self.publisher_gates[scope].set_open(is_open=ours)
        missing = gone.keys() & set().union(*membership.members.values())
        if missing and self.gone.empty():
            # Each in turn: an instance whose work cannot be taken over does not delay the others.
            self._last_gone = min(missing, key=lambda name: (name <= self._last_gone, name))
            self.gone.put_nowait(EndedInstance(self._last_gone, gone[self._last_gone]))


@contextlib.asynccontextmanager
async def open_instance(store: Store, scopes: Sequence[str]) -> AsyncIterator[Instance]:
    """Open an instance on scopes under the consumer name of the store, for the length of the block.

    Raises Unavailable when another instance of that name works.
    """
    instance = Instance(store, scopes)
    await instance.enter()
    try:
        async with background_task(instance.run(), "instance"):
            yield instance
    finally:
        await instance.leave()


_LATE_S = 2 * MAX_BLOCK_MS / 1000
"""How long the server may still deliver work to a frozen process, whose last request is pending there."""


class _Outcome(Enum):
    """The outcome for the outbox of a job: taken over, of another scope, or not readable yet."""

    TAKEN = auto()
    NOT_OURS = auto()
    LEFT = auto()


class TakeOver:
    """Continues the work of ended instances, one after the other."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        instance: Instance,
        runs: Runs,
        worker: Worker,
        late_s: float = _LATE_S,
    ) -> None:
        self._store = store
        self._scopes = tuple(scopes)
        self._instance = instance
        self._runs = runs
        self._worker = worker
        self._late_s = late_s
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        """Search for ended instances until cancelled; a failure is retried in the next round."""
        while True:
            ended = await self._instance.gone.get()
            former, token = ended.name, self._instance.token
            try:
                # Holding its lease meanwhile excludes other instances and the start of the instance itself.
                if await instance_leases.acquire(self._store, former, token, ended.lease) is None:
                    await self._take_over(former)
                    await instance_leases.release(self._store, former, token)
            except Unavailable as error:
                logger.warning("take-over waits for the store", former=former, reason=error.message)

    async def _take_over(self, former: str) -> None:
        claimed = await work.claim_from(self._store, former, self._scopes)
        if claimed:
            self._worker.claimed()
        outcomes = [
            await self._take_outbox(job_id, former) for job_id in await runs.jobs_with_outbox(self._store, former)
        ]
        if claimed or _Outcome.TAKEN in outcomes:
            taken = outcomes.count(_Outcome.TAKEN)
            logger.info("instance taken over", former=former, work=claimed, jobs=taken)
        elif _Outcome.LEFT in outcomes:
            # The wait begins again: an unregistered instance would not be found.
            self._since.pop(former, None)
        elif time.monotonic() - self._since.setdefault(former, time.monotonic()) > self._late_s:
            del self._since[former]
            # It may have received work since, which would be lost with it.
            if not await work.has_pending(self._store, former, self._scopes):
                await instance_leases.unregister(self._store, self._scopes, former)

    async def _take_outbox(self, job_id: str, former: str) -> _Outcome:
        with Isolated(logger, "job cannot be taken over", job=job_id, former=former):
            loaded = await self._runs.get(job_id)
            if loaded is None or loaded.job.scope not in self._scopes:
                return _Outcome.NOT_OURS
            await take_over(self._runs, job_id, former, Commit())
            return _Outcome.TAKEN
        return _Outcome.LEFT
