"""Runs work in the background for exactly as long as a block of code."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run `work` in a task of that name; cancel it at the end of the block.

    An exception of the block is raised unchanged. When `work` fails, the block is cancelled and the failure is raised
    in an exception group. A failure of `work` while the block is cancelled is dropped, and CancelledError is raised.
    """
    failure: Exception | None = None
    is_cancelled = False
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work, name=name)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below: inside, the group would wrap it
                failure = error
            except asyncio.CancelledError:
                is_cancelled = not task.done()
                raise
            finally:
                task.cancel()
    except BaseExceptionGroup:
        # The group would swallow the cancellation, and its owner would work on.
        if is_cancelled:
            raise asyncio.CancelledError from None
        raise
    if failure is not None:
        raise failure
