"""The clock of the jobs: it runs evenly, and follows a step of the reference clock only while no job runs.

The reference is the clock of the store's host: deadlines are instants in the store, and every gateway on that store has
to judge them by the same clock. A step while deadlines are awaited would make them all due at once, or never.
"""

import time
from collections.abc import Awaitable, Callable, Iterator

import structlog

from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.model.lock import LockKind
from edge.store import locks, runs
from edge.store.background import poll_store
from edge.store.client import Store
from edge.store.server_time import (
    difference_problem,
    end_clock_difference,
    jobs_clock_problem,
    read_server_clock,
    set_clock_difference,
)

logger = structlog.get_logger(__name__)

_POLL_INTERVAL_S = 2.0
"""A gateway that starts sooner than this after a step of the host's clock may take the wrong one."""
_SMALL_MS = 100
"""A step that does not harm the deadlines of jobs."""
_NS = 1_000_000


def _since_boot_ns() -> int:
    # This clock also runs while the machine is suspended: equipment does not wait for us.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class StoreTime:
    """The wall clock of the store's host, in nanoseconds since the epoch, as of the last measurement.

    Behind Sentinel it continues that of the host of the first primary: deadlines do not jump with a failover.
    """

    def __init__(
        self,
        store: Store,
        elapsed_ns: Callable[[], int] = _since_boot_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._wall_ns = wall_ns
        self._elapsed_ns = elapsed_ns
        self._origin_ns = 0
        self.server_ahead_ms = 0
        """What the clock of the store's host is ahead of that of this machine."""

    def __call__(self) -> int:
        """Return the instant."""
        return self._origin_ns + self._elapsed_ns()

    def host_ms(self) -> int:
        """Return the present instant of the clock of the store's host, by which the expiry of a message is judged.

        All gateways of the store have to judge alike: one would refuse a call as expired that another one executes.
        """
        return now_ms() + self.server_ahead_ms

    def problems(self) -> Iterator[Text]:
        """Yield the problem of two clocks that differ."""
        if problem := difference_problem(self.server_ahead_ms):
            yield problem

    async def refresh(self) -> None:
        """Measure again. A difference that the duration of the request explains is ignored.

        Raises Unavailable when the store is gone.
        """
        before = self._elapsed_ns()
        reading = await read_server_clock(self._store, self._wall_ns)
        after = self._elapsed_ns()
        self.server_ahead_ms = reading.ahead_ms
        measured = reading.server_ns + self._store.clock_ms * _NS - (before + after) // 2
        if abs(measured - self._origin_ns) > after - before:
            self._origin_ns = measured

    async def settle(self) -> None:
        """Measure again, and end the difference that a failover has left once it is of no use.

        That is when the clock of the new host agrees with that of this machine, no job runs, and no operation or person
        holds a lock with a lease. Raises Unavailable when the store is gone.
        """
        await self.refresh()
        store = self._store
        if not store.clock_ms or difference_problem(self.server_ahead_ms):
            return
        if not await locks.load_all(store, LockKind) and await end_clock_difference(store):
            await self.refresh()
            logger.info("clock difference ended")


async def store_clock(store: Store) -> "SteadyClock":
    """Return a clock that shows the time of the store's host, for a command that visits the store."""
    reference = StoreTime(store)
    await reference.refresh()
    return SteadyClock(reference)


class SteadyClock:
    """A clock that returns the present instant in milliseconds since the epoch."""

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, elapsed_ns: Callable[[], int] = _since_boot_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._elapsed_ns = elapsed_ns
        self._begin_ns = 0
        self.follow()

    def __call__(self) -> int:
        """Return the instant."""
        return (self._begin_ns + self._elapsed_ns()) // _NS

    def step_ms(self) -> int:
        """Return the step of the reference clock since it was followed last, negative for a step back."""
        return (self._wall_ns() - self._elapsed_ns() - self._begin_ns) // _NS

    def follow(self) -> None:
        """Set the clock to the reference clock."""
        self._begin_ns = self._wall_ns() - self._elapsed_ns()

    def problems(self, store: Store) -> Iterator[Text]:
        """Yield the problem of jobs that run by another clock than that of the store's host."""
        if problem := jobs_clock_problem(store.clock_ms - self.step_ms()):
            yield problem


async def _unchanged() -> None:
    """Refresh nothing: the reference is always current."""


async def follow_reference_clock(
    clock: SteadyClock,
    store: Store,
    every_s: float = _POLL_INTERVAL_S,
    refresh: Callable[[], Awaitable[None]] = _unchanged,
) -> None:
    """Follow each step of the reference clock as soon as no job runs, until cancelled.

    Behind Sentinel a step of the host's clock while jobs run changes the stored difference instead: then also a gateway
    that starts judges the jobs by the clock of the others.
    """
    reported, difference = 0, store.clock_ms
    """The step that the log has, and the stored difference with which our clock was that of the others."""

    async def look() -> None:
        nonlocal reported, difference
        await refresh()
        step = clock.step_ms()
        # A difference that another gateway has set is that of all of them.
        if abs(step) < _SMALL_MS or difference != store.clock_ms or not await runs.active_jobs(store):
            clock.follow()
            difference = store.clock_ms
            if reported:
                logger.info("clock step followed", step_s=step / 1000)
            reported = 0
        elif store.ha is not None:
            await set_clock_difference(store, difference - step)
            difference -= step
            logger.warning("clock of the store's host stepped, jobs keep theirs", step_s=step / 1000)
        elif abs(step - reported) > _SMALL_MS:
            logger.warning("clock stepped, followed when no job runs", step_s=step / 1000)
            reported = step

    await poll_store(store.defects, "clock", look, every_s)
