"""Reads the clock of the store's host, by which leases and deadlines of several machines are judged.

Behind Sentinel the jobs' clock continues that of the former primary's host: what it is ahead of the present one is a
field of the generation.
"""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, join, operation

MOST_DIFFERENCE_MS: Final = 1000
"""A larger difference between the clocks of two machines is a problem."""
_NS = 1_000_000


class ClockReading(Struct, frozen=True):
    """One reading of the clock of the store's host, in nanoseconds since the epoch, `taken_ns` after its request."""

    server_ns: int
    taken_ns: int
    wall_ns: int
    """The clock of this machine in the middle of the request."""

    @property
    def ahead_ms(self) -> int:
        """What the server's clock is ahead of ours; 0 for a difference that the duration of the request explains."""
        ahead = self.server_ns - self.wall_ns
        return 0 if abs(ahead) <= self.taken_ns // 2 else round(ahead / _NS)


async def server_time(store: Store) -> int:
    """Return the present instant of the store in milliseconds since the epoch: of its host, steady over failovers."""
    seconds, microseconds = await store.execute("TIME")
    return int(seconds) * 1000 + int(microseconds) // 1000 + store.clock_ms


async def read_server_clock(store: Store, wall_ns: Callable[[], int] = time.time_ns) -> ClockReading:
    """Read the clock of the store's host; behind Sentinel also what the jobs' clock is ahead of it. Raises Unavailable.

    Another gateway may have ended that difference.
    """
    commands: list[tuple[str, ...]] = [("TIME",)]
    if store.ha is not None:
        commands.append(("HGET", store.keys.generation(), "clock"))
    before = wall_ns()
    (seconds, microseconds), *ahead = await store.read(commands)
    after = wall_ns()
    if store.ha is not None and store.ha.generation.expected is not None:
        store.ha.generation.expected = replace(store.ha.generation.expected, clock_ms=int(ahead[0] or 0))
    server_ns = int(seconds) * 1_000_000_000 + int(microseconds) * 1_000
    return ClockReading(server_ns, after - before, (before + after) // 2)


async def set_clock_difference(store: Store, ahead_ms: int) -> None:
    """Set what the jobs' clock is ahead of that of the store's host, for all gateways. Raises Unavailable.

    Without Sentinel there is no such difference.
    """
    # The commit is guarded by the generation: a later failover keeps the difference that it has left.
    await store.commit(operation("HSET", store.keys.generation(), "clock", ahead_ms))


async def end_clock_difference(store: Store) -> bool:
    """Set the jobs' clock to that of the store's host, unless a job runs; return whether it was. Raises Unavailable."""
    no_job_runs = Commit((Absent(store.keys.sfc_active_jobs()),))
    ended = join((no_job_runs, operation("HSET", store.keys.generation(), "clock", 0)))
    return isinstance(await store.commit(ended), Committed)


def jobs_clock_problem(ahead_ms: int) -> Text | None:
    """Return the problem of jobs whose clock differs from that of the store's host; None for a small difference."""
    if abs(ahead_ms) <= MOST_DIFFERENCE_MS:
        return None
    seconds = abs(ahead_ms) / 1000
    if ahead_ms > 0:
        return Text.of("the clock of the jobs is {seconds:.1f} s ahead of that of the store's host", seconds=seconds)
    return Text.of("the clock of the jobs is {seconds:.1f} s behind that of the store's host", seconds=seconds)


def difference_problem(ahead_ms: int) -> Text | None:
    """Return the problem of a server whose clock differs from ours; None for a small difference."""
    if abs(ahead_ms) <= MOST_DIFFERENCE_MS:
        return None
    seconds = abs(ahead_ms) / 1000
    if ahead_ms > 0:
        return Text.of(
            "the clock of the store's host is {seconds:.1f} s ahead of that of this machine", seconds=seconds
        )
    return Text.of("the clock of the store's host is {seconds:.1f} s behind that of this machine", seconds=seconds)
