"""Runs work in the background for exactly as long as a block of code."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

from edge.foundation.task_group import CancelledWithinError


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
