"""Runs a coroutine in virtual time: the clock of its event loop jumps to the next timer when nothing else is to do."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that waits for no file: it adds the time of each wait to `now`."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the coroutine waits for something that no timer ends")
        self.now += timeout
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtual(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that uses no sockets in a loop whose clock begins at 0 and passes without waiting."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)
