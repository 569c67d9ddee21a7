"""Runs tasks for as long as a block of code; a cancellation from within is a failure, which asyncio ends quietly.

A library that cancels its futures, for example those of a lost connection, would end a service without a trace.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import structlog

logger = structlog.get_logger(__name__)

_T = TypeVar("_T")
_LEAVES_ITS_REQUEST: Final = sys.version_info < (3, 13)
"""Whether asyncio cancels the owner for a task that fails during the exit, and does not take that back."""


class CancelledWithinError(Exception):
    """Something that a task awaited was cancelled, not the task itself."""


@contextmanager
def cancellation_reported() -> Iterator[None]:
    """Raise CancelledWithinError for a CancelledError of the block, unless the task of the block is cancelled."""
    try:
        yield
    except asyncio.CancelledError as error:
        _require_own(error)
        raise


class TaskGroup(asyncio.TaskGroup):  # noqa: TID251 - the group of this product
    """A task group that fails, as for any other error, when one of its tasks ends by a cancellation from within.

    When its owner is cancelled it raises CancelledError, also when a task fails at the same time: asyncio before Python
    3.13 loses the cancellation then, and a loop that expects the failure continues for ever.
    """

    _parent_cancel_requested: bool

    async def __aenter__(self) -> Self:
        """Begin; see `asyncio.TaskGroup`."""
        self._owner_cancelling = _owner().cancelling()
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait for the tasks; let the error of the block pass, where asyncio raises the same one again.

        An AsyncExitStack makes an error that is raised again its own context, and follows that circle without end.
        """
        requested_before = self._parent_cancel_requested
        try:
            await super().__aexit__(kind, error, traceback)
        except asyncio.CancelledError as cancelled:
            if cancelled is not error:
                raise
        except BaseExceptionGroup as failed:
            if _LEAVES_ITS_REQUEST and self._parent_cancel_requested and not requested_before:
                _owner().uncancel()
            if _owner().cancelling() <= self._owner_cancelling:
                raise
            logger.info(
                "tasks failed while they were cancelled", errors=[repr(exception) for exception in failed.exceptions]
            )
            raise asyncio.CancelledError from failed

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        """Start a task; cancel it by its `cancel` only."""
        work = _reporting(cast("Coroutine[Any, Any, _T]", coro))
        task: asyncio.Task[_T] = super().create_task(work, name=name, context=context)
        # A task that is cancelled before its first turn never awaits its coroutine.
        task.add_done_callback(lambda _: coro.close())
        return task


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raise CancelledError at the end of a block during which its task was cancelled, whatever the block made of it.

    A library that awaits the end of a task of its own, and ignores how that ends, ignores our cancellation with it.
    """
    before = _owner().cancelling()
    yield
    if _owner().cancelling() > before:
        raise asyncio.CancelledError


def _owner() -> asyncio.Task[Any]:
    return cast("asyncio.Task[Any]", asyncio.current_task())


async def _reporting(work: Coroutine[Any, Any, _T]) -> _T:
    try:
        return await work
    except asyncio.CancelledError as error:
        _require_own(error)
        raise


def _require_own(error: asyncio.CancelledError) -> None:
    task = asyncio.current_task()
    if task is not None and not task.cancelling():
        raise CancelledWithinError(f"what {task.get_name()!r} awaited was cancelled") from error


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run `work` in a task of that name; cancel it at the end of the block.

    An exception of the block is raised unchanged. When `work` fails, or is cancelled from within, the block is
    cancelled and the failure is raised in an exception group. A failure of `work` while the owner of the block is
    cancelled is dropped, and CancelledError is raised: a TaskGroup of Python before 3.13 loses that cancellation.
    """
    owner = cast("asyncio.Task[Any]", asyncio.current_task())
    task = asyncio.get_running_loop().create_task(work, name=name)
    cancelled_before = owner.cancelling()
    is_over = cancels_block = False

    def cancel_block(_: object) -> None:
        nonlocal cancels_block
        if not is_over and (task.cancelled() or task.exception() is not None):
            cancels_block = True
            owner.cancel()

    task.add_done_callback(cancel_block)
    failure: Exception | None = None
    is_cancelled = False
    try:
        yield
    except Exception as error:  # noqa: BLE001 - raised again below
        failure = error
    except asyncio.CancelledError:
        is_cancelled = not cancels_block or owner.cancelling() > cancelled_before + 1
    finally:
        is_over = True
        if cancels_block:
            owner.uncancel()
        had_ended = task.done()
        is_cancelled |= await _end(task)
    if is_cancelled:
        raise asyncio.CancelledError
    if task.cancelled() and had_ended:
        raise ExceptionGroup(f"{name} ended", [CancelledWithinError(f"what {name!r} awaited was cancelled")])
    if not task.cancelled() and (reason := task.exception()) is not None:
        raise BaseExceptionGroup(f"{name} failed", [reason])
    if failure is not None:
        raise failure


async def _end(task: asyncio.Task[None]) -> bool:
    """Cancel a task and wait for its end; return whether the caller was cancelled meanwhile."""
    is_cancelled = False
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            is_cancelled = True
            task.cancel()
    return is_cancelled
