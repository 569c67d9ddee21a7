"""Runs work in the background for exactly as long as a block of code."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background_task(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run `work` in a task of that name; cancel it at the end of the block.

    An exception of the block is raised unchanged. When `work` fails, the block is cancelled and the failure is raised
    in an exception group.
    """
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(work, name=name)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again below: inside, the group would wrap it
            failure = error
        finally:
            task.cancel()
    if failure is not None:
        raise failure
