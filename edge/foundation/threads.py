"""Runs work in a thread that a stop waits for, though not without end: a disk that hangs must not hold up the stop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import structlog

logger = structlog.get_logger(__name__)

STOP_WAIT_S: Final = 3.0
"""How long a cancelled task waits for its thread, in seconds; the whole stop of the gateway has ten."""
_T = TypeVar("_T")


async def run_in_thread(work: Callable[[], _T], name: str) -> _T:
    """Run work in a daemon thread and return its result; `name` is what the log calls it.

    Work in a thread cannot be stopped: a cancelled task waits for its end. After `STOP_WAIT_S` it leaves the thread,
    which ends with its work or with the process.
    """
    ended = asyncio.wrap_future(daemon_future(work, name))
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        await _wait(ended, name)
        raise


async def end_in_thread(work: Callable[[], object], name: str) -> None:
    """Run the last work of a task, such as closing a file, and wait for it for `STOP_WAIT_S` at most."""
    await _wait(asyncio.wrap_future(daemon_future(work, name)), name)


def daemon_future(work: Callable[[], _T], name: str) -> Future[_T]:
    """Run work in a daemon thread of its own; return the future of its result. It does not delay the exit."""
    future: Future[_T] = Future()

    def call() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is read
            future.set_exception(error)

    threading.Thread(target=call, name=name, daemon=True).start()
    return future


async def _wait(ended: "asyncio.Future[Any]", name: str) -> None:
    """Wait for the end of a thread; log its error."""
    await asyncio.wait([ended], timeout=STOP_WAIT_S)
    if not ended.done():
        logger.warning("stop does not wait for a thread", thread=name, waited_s=STOP_WAIT_S)
    elif (error := ended.exception()) is not None:
        logger.warning("last work of a thread failed", thread=name, reason=str(error))
