"""Shares the event loop: client work runs in short slices, one request at a time, in fair order, within one budget.

The order is fair between users first and between the sessions of a user then: who has used less is next. An anonymous
session counts as the user of its address, and so does what comes before a login. A user who has used little does not
wait for the budget that the others have used up. Work in threads has one thread for decoding and one for files, with
the same order and the same budget.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from edge.foundation.rate_limit import Allowance

SLICE_S = 0.003
"""Work that has run longer than this yields to the event loop at its next step."""

SHARE = 0.4
"""Share of a processor that the work of all clients may use over time."""

BURST_S = 2.0
"""Work of all clients at once after a pause: a client that reads all types needs one second."""

OWN_SHARE = 0.08
OWN_BURST_S = 0.4
"""What a user may use, over time and at once, where the others have used up the budget."""

SESSION_SHARE = 0.03
SESSION_BURST_S = 0.15
"""The same for a session, where other sessions of its user have used up what the user may."""

SWITCH_S = 0.0005
"""How long a working thread keeps the interpreter while the event loop wants it, as it does for each callback."""

_MOST_USERS = 200

_T = TypeVar("_T")


class _User:
    """What a user has used; the seconds of a newcomer begin with those of the one who was served last."""

    def __init__(self) -> None:
        self.used_s = 0.0
        self.served_s = 0.0
        """The seconds of the session of this user that was served last."""
        self.own = Allowance(OWN_SHARE, OWN_BURST_S)


class _Budget:
    """What all clients may use, and the users."""

    def __init__(self) -> None:
        self.total = Allowance(SHARE, BURST_S)
        self.served_s = 0.0
        """The seconds of the user who was served last."""
        self._users: dict[str, _User] = {}

    def user(self, name: str) -> _User:
        """Return a user; of more than 200 the one that appeared first is forgotten."""
        user = self._users.setdefault(name, _User())
        if len(self._users) > _MOST_USERS:
            del self._users[next(iter(self._users))]
        return user


class Account:
    """The session, or the connection before its login, to which work is charged."""

    def __init__(self, budget: _Budget, user: _User) -> None:
        self._budget = budget
        self._user = user
        self._own = Allowance(SESSION_SHARE, SESSION_BURST_S)
        self.used_s = 0.0
        """The seconds that it has used; those of a newcomer begin with those of the one who was served last."""

    def use(self, seconds: float) -> None:
        """Count work."""
        self.used_s += seconds
        self._user.used_s += seconds
        self._own.use(seconds)
        self._user.own.use(seconds)
        self._budget.total.use(seconds)

    def arrive(self) -> None:
        """Begin to wait: who paused has no right to what the others have used meanwhile."""
        self._user.used_s = max(self._user.used_s, self._budget.served_s)
        self.used_s = max(self.used_s, self._user.served_s)

    def serve(self) -> None:
        """Begin to work."""
        self._budget.served_s = self._user.used_s
        self._user.served_s = self.used_s

    def wait_s(self) -> float:
        """Return the seconds until it may work."""
        return self._budget.total.wait_s() if self._is_heavy() else 0.0

    def rank(self) -> tuple[bool, float, float]:
        """Return its place among those that wait; the lowest is next."""
        return self._is_heavy(), self._user.used_s, self.used_s

    def _is_heavy(self) -> bool:
        return self._user.own.wait_s() > 0 and self._own.wait_s() > 0


ACCOUNT: ContextVar[Account] = ContextVar("ACCOUNT")
"""The account of the message that is being processed."""

_AROUND: ContextVar["_Charged"] = ContextVar("_AROUND")
"""The charged work of which a turn is a part."""


class _Place:
    """What one piece of work has at a time: the event loop or a thread."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Account, asyncio.Future[None]]] = []
        self._is_taken = False
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, account: Account) -> None:
        """Wait for the budget and for the place."""
        account.arrive()
        granted = asyncio.get_running_loop().create_future()
        entry = account, granted
        self._waiting.append(entry)
        self._grant()
        try:
            if not granted.done():
                await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self.release()
            elif entry in self._waiting:
                self._waiting.remove(entry)
            raise

    def release(self) -> None:
        """Release the place for the next one."""
        self._is_taken = False
        self._grant()

    def _grant(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # The task of a cancelled one has not run yet.
        self._waiting = [entry for entry in self._waiting if not entry[1].cancelled()]
        if self._is_taken or not self._waiting:
            return
        entry = min(self._waiting, key=lambda waiting: waiting[0].rank())
        account, granted = entry
        if (wait_s := account.wait_s()) > 0:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._grant)
            return
        self._waiting.remove(entry)
        self._is_taken = True
        account.serve()
        granted.set_result(None)


class _LoopPlace(_Place):
    """The event loop: those that have it work one slice in a pass, together: else twenty tasks would work in one."""

    def __init__(self, slice_s: float) -> None:
        super().__init__()
        self.slice_s = slice_s
        self.is_used_up = False
        """Whether the slice of this pass is used up: the next one works in the next pass."""
        self._used_s = 0.0
        """Work since the event loop was last left to all other tasks."""

    def use(self, used_s: float) -> None:
        """Count work in this pass."""
        self._used_s += used_s
        if self._used_s > self.slice_s and not self.is_used_up:
            self.is_used_up = True
            asyncio.get_running_loop().call_soon(self._begin_pass)

    def _begin_pass(self) -> None:
        self._used_s = 0.0
        self.is_used_up = False
        self._grant()

    def _grant(self) -> None:
        if not self.is_used_up:
            super()._grant()


class WorkThread:
    """One thread for work of clients; it is charged when it ends."""

    def __init__(self, name: str) -> None:
        self._place = _Place()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, account: Account, work: Callable[[], _T]) -> _T:
        """Run work and return its result. Who is cancelled meanwhile pays, too: the thread cannot be stopped."""
        await self._place.acquire(account)
        used: list[float] = []
        loop = asyncio.get_running_loop()

        def timed() -> _T:
            started = time.thread_time()
            try:
                return work()
            finally:
                used.append(time.thread_time() - started)

        def end(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._end, account, used)

        running = self._executor.submit(timed)
        running.add_done_callback(end)
        return await asyncio.wrap_future(running)

    def close(self) -> None:
        """Start no further work."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _end(self, account: Account, used: list[float]) -> None:
        account.use(sum(used))
        self._place.release()


class Turn:
    """The right to run; `step` yields to the event loop when the slice is used up."""

    def __init__(self, turns: "Turns", place: _LoopPlace, account: Account, clock: Callable[[], float]) -> None:
        self._turns = turns
        self._place = place
        self._account = account
        self._clock = clock
        self._since = clock()
        self._is_held = False

    async def step(self) -> None:
        """Wait until all other tasks have run when the slice is used up."""
        if self._clock() - self._since > self._place.slice_s:
            self.end()
            await asyncio.sleep(0)
            await self.begin()

    async def begin(self) -> None:
        """Wait for the budget and for the turn."""
        await self._place.acquire(self._account)
        self._is_held = True
        self._since = self._clock()

    def end(self) -> None:
        """Release the turn; nothing happens when it was lost while waiting."""
        if self._is_held:
            self._is_held = False
            used_s = self._clock() - self._since
            self._account.use(used_s)
            self._place.use(used_s)
            if (around := _AROUND.get(None)) is not None:
                around.counted_s += used_s
            self._place.release()

    async def read(self, work: Callable[[], _T]) -> _T:
        """Read files in the thread for them, and return the result; others have their turns meanwhile."""
        return await self.wait(self._turns.reader.run(self._account, work))

    async def decode(self, work: Callable[[], _T]) -> _T:
        """Decode a long request in the thread for them, and return the result; others have their turns meanwhile."""
        return await self.wait(self._turns.decoder.run(self._account, work))

    async def wait(self, other: Awaitable[_T]) -> _T:
        """Wait for other work without the turn."""
        self.end()
        try:
            return await other
        finally:
            await self.begin()


class Turns:
    """The turns of one server. Work between two steps should take a few milliseconds at most."""

    def __init__(self, slice_s: float = SLICE_S, clock: Callable[[], float] = time.thread_time) -> None:
        sys.setswitchinterval(SWITCH_S)
        self.decoder = WorkThread("opcua-decoder")
        """The thread for long requests, which would hold the event loop."""
        self.reader = WorkThread("opcua-reader")
        """The thread for files."""
        self._budget = _Budget()
        self._place = _LoopPlace(slice_s)
        self._clock = clock

    def account(self, user: str) -> Account:
        """Return an account of a user."""
        return Account(self._budget, self._budget.user(user))

    @asynccontextmanager
    async def work(self, account: Account) -> AsyncIterator[Turn]:
        """Run the block as work of a session. It must wait for `step` only."""
        turn = Turn(self, self._place, account, self._clock)
        await turn.begin()
        try:
            yield turn
        finally:
            turn.end()

    async def charge(self, account: Account, work: Coroutine[Any, Any, _T]) -> _T:
        """Run work that waits for other things than `step`, such as the store: it has a turn to begin with only."""
        try:
            async with self.work(account):
                pass
        except BaseException:
            work.close()
            raise
        return await self.count(account, work)

    async def count(self, account: Account, work: Coroutine[Any, Any, _T]) -> _T:
        """Run work that takes turns itself, and charge all of its time; that of its turns is counted once."""
        charged = _Charged(self._place, account, work, self._clock, _AROUND.get(None))
        tokens = ACCOUNT.set(account), _AROUND.set(charged)
        try:
            return await charged
        finally:
            ACCOUNT.reset(tokens[0])
            _AROUND.reset(tokens[1])

    def close(self) -> None:
        """Start no further work in threads."""
        self.decoder.close()
        self.reader.close()


class _Charged:
    """A coroutine whose own time between its waits is charged; it continues in a pass that has time left."""

    def __init__(
        self,
        place: _LoopPlace,
        account: Account,
        work: Coroutine[Any, Any, _T],
        clock: Callable[[], float],
        around: "_Charged | None" = None,
    ) -> None:
        self._place = place
        self._account = account
        self._work = work
        self._clock = clock
        self._around = around
        self.counted_s = 0.0
        """What turns within the work have counted since it continued."""

    def __await__(self) -> Generator[Any, Any, Any]:
        proceed: Callable[[], Any] = partial(self._work.send, None)
        while True:
            self.counted_s, started = 0.0, self._clock()
            try:
                waits_for = proceed()
            except StopIteration as end:
                return end.value
            finally:
                used_s = max(0.0, self._clock() - started - self.counted_s)
                self._account.use(used_s)
                self._place.use(used_s)
                if self._around is not None:
                    self._around.counted_s += used_s + self.counted_s
            try:
                yield waits_for
                while self._place.is_used_up:
                    yield
                proceed = partial(self._work.send, None)
            except BaseException as error:  # noqa: BLE001 - a cancellation belongs to the coroutine
                proceed = partial(self._work.throw, error)


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
