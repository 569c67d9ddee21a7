"""Shares the event loop: client work runs in short slices, one request at a time, with a budget per session."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from edge.foundation.rate_limit import Allowance

SLICE_S = 0.003
"""Work that has run longer than this yields to the event loop at its next step."""

SHARE = 0.3
"""Share of the processor that the requests of one session may use over time."""

BURST_S = 2.0
"""Work that a session may use at once after a pause: a client that reads all types needs one second."""


OPENING_SHARE = 0.1
OPENING_BURST_S = 0.5
"""Work for the secure channels of one address, without a login: each takes a few milliseconds."""

_MOST_ADDRESSES = 200


def session_budget() -> Allowance:
    """Return the processor time that one session may use."""
    return Allowance(SHARE, BURST_S)


class Openings:
    """The processor time of each address for its secure channels. Of more than 200 the oldest are forgotten."""

    def __init__(self) -> None:
        self._budgets: dict[str, Allowance] = {}

    def of(self, address: str) -> Allowance:
        """Return what an address may use."""
        budget = self._budgets.setdefault(address, Allowance(OPENING_SHARE, OPENING_BURST_S))
        if len(self._budgets) > _MOST_ADDRESSES:
            del self._budgets[next(iter(self._budgets))]
        return budget


class _SlicedLock:
    """A lock whose holders work one slice in a pass of the event loop, together."""

    def __init__(self, slice_s: float) -> None:
        self._lock = asyncio.Lock()
        self._slice_s = slice_s
        self._used_s = 0.0
        """Work since the event loop was last left to all other tasks."""

    async def acquire(self) -> None:
        """Wait for the lock."""
        await self._lock.acquire()

    def release(self, used_s: float) -> None:
        """Release the lock, when a slice is used up in the next pass: else twenty waiting tasks would work in one."""
        self._used_s += used_s
        if self._used_s > self._slice_s:
            asyncio.get_running_loop().call_soon(self._release_in_new_pass)
        else:
            self._lock.release()

    def _release_in_new_pass(self) -> None:
        self._used_s = 0.0
        self._lock.release()


class Turn:
    """The right to run; `step` yields to the event loop when the slice is used up."""

    def __init__(self, lock: _SlicedLock, budget: Allowance, clock: Callable[[], float], slice_s: float) -> None:
        self._lock = lock
        self._budget = budget
        self._clock = clock
        self._slice_s = slice_s
        self._since = clock()
        self._is_held = False

    async def step(self) -> None:
        """Wait until all other tasks have run when the slice is used up."""
        if self._clock() - self._since > self._slice_s:
            self.end()
            await asyncio.sleep(0)
            await self.begin()

    async def begin(self) -> None:
        """Wait for the budget and for the turn."""
        if (wait_s := self._budget.wait_s()) > 0:
            await asyncio.sleep(wait_s)
        await self._lock.acquire()
        self._is_held = True
        self._since = self._clock()

    def end(self) -> None:
        """Release the turn; nothing happens when it was lost while waiting."""
        if self._is_held:
            self._is_held = False
            used_s = self._clock() - self._since
            self._budget.use(used_s)
            self._lock.release(used_s)


class Turns:
    """The turns of one server. Work between two steps should take a few milliseconds at most."""

    def __init__(self, slice_s: float = SLICE_S, clock: Callable[[], float] = time.thread_time) -> None:
        self._lock = _SlicedLock(slice_s)
        self._slice_s = slice_s
        self._clock = clock

    @asynccontextmanager
    async def work(self, budget: Allowance) -> AsyncIterator[Turn]:
        """Run the block as work of a session. It must wait for `step` only."""
        turn = Turn(self._lock, budget, self._clock, self._slice_s)
        await turn.begin()
        try:
            yield turn
        finally:
            turn.end()


class Pacer:
    """Yields to the event loop in loops over subscribers; without a budget, as the server itself is at work."""

    def __init__(self, slice_s: float = SLICE_S, clock: Callable[[], float] = time.thread_time) -> None:
        self._slice_s = slice_s
        self._clock = clock
        self._since = clock()

    async def step(self) -> None:
        """Wait until all other tasks have run when the slice is used up."""
        if self._clock() - self._since > self._slice_s:
            await asyncio.sleep(0)
            self._since = self._clock()
