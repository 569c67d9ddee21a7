"""The time by which jobs run: it goes on evenly, and follows a wall clock that was set only when no job runs.

Deadlines stand in the store as instants: a step of the clock while they are awaited would make them all come at once,
or not at all.
"""

import asyncio
import time
from collections.abc import Callable

import structlog

from edge.errors import Unavailable
from edge.store import runs
from edge.store.client import Store

logger = structlog.get_logger(__name__)

_LOOK_EVERY_S = 10.0
_SMALL_MS = 100
"""A step that no deadline of a job suffers from."""
_NS = 1_000_000


def _since_boot_ns() -> int:
    # Counts while the machine is suspended, too: equipment does not wait for us.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Gives the present instant in milliseconds since the epoch."""

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, elapsed_ns: Callable[[], int] = _since_boot_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._elapsed_ns = elapsed_ns
        self._begin_ns = 0
        self.follow()

    def __call__(self) -> int:
        """Give the instant."""
        return (self._begin_ns + self._elapsed_ns()) // _NS

    def step_ms(self) -> int:
        """Give how far the wall clock was set forward, or back, since it was followed last."""
        return (self._wall_ns() - self._elapsed_ns() - self._begin_ns) // _NS

    def follow(self) -> None:
        """Go on with the time of the wall clock."""
        self._begin_ns = self._wall_ns() - self._elapsed_ns()


async def follow_wall_clock(clock: SteadyClock, store: Store, every_s: float = _LOOK_EVERY_S) -> None:
    """Follow each step of the wall clock as soon as no job runs, until cancelled."""
    told = 0
    while True:
        await asyncio.sleep(every_s)
        step = clock.step_ms()
        if step == 0:
            continue
        try:
            if abs(step) < _SMALL_MS or not await runs.active_jobs(store):
                clock.follow()
                if told:
                    logger.info("the new wall clock is followed", step_s=step / 1000)
                told = 0
            elif abs(step - told) > _SMALL_MS:
                logger.warning("the wall clock was set; it is followed when no job runs", step_s=step / 1000)
                told = step
        except Unavailable as error:
            logger.debug("following the wall clock waits for the store", reason=error.message)
