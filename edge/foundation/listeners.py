"""Notifies of a change: calls functions, and wakes tasks that wait for a condition."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import ParamSpec

import structlog

logger = structlog.get_logger(__name__)

_P = ParamSpec("_P")


def notify(listeners: Iterable[Callable[_P, None]], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call every listener; one that fails is logged and affects neither the others nor the caller."""
    for listener in tuple(listeners):
        try:
            listener(*args, **kwargs)
        except Exception:
            # What is reported has happened already: a failing listener must not undo or hide it.
            logger.exception("listener failed", listener=_name_of(listener))


async def notify_async(listeners: Iterable[Callable[_P, Awaitable[None]]], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call every listener in turn and wait for it; one that fails is logged and affects no other."""
    for listener in tuple(listeners):
        try:
            await listener(*args, **kwargs)
        except Exception:
            # What is reported has happened already: a failing listener must not undo or hide it.
            logger.exception("listener failed", listener=_name_of(listener))


def _name_of(listener: object) -> str:
    return getattr(listener, "__qualname__", type(listener).__name__)


class ChangeSignal:
    """Wakes the tasks that wait for a condition: `set` it after each change that may make one true."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def set(self) -> None:
        """Wake every waiting task to check its condition."""
        self._changed.set()

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Wait at most `seconds` for a condition, without a limit for None; return whether it is true."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True
