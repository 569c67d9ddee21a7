"""A task that ends by a cancellation from within fails its group; its own cancellation ends it quietly."""

import asyncio

import pytest

from edge.task_group import CancelledWithinError, TaskGroup, cancellation_reported


async def test_group_fails_when_what_a_task_awaits_is_cancelled() -> None:
    awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await awaited

    async def serve() -> None:
        async with TaskGroup() as tasks, asyncio.timeout(10):
            tasks.create_task(wait(), name="watch")
            await asyncio.sleep(0)
            awaited.cancel()
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failure:
        await serve()
    assert failure.group_contains(CancelledWithinError, match="'watch'")


async def test_cancelled_task_ends_quietly() -> None:
    async with TaskGroup() as tasks:
        task = tasks.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


async def test_task_cancelled_before_it_runs_ends_quietly() -> None:
    async with TaskGroup() as tasks:
        task = tasks.create_task(asyncio.sleep(60))
        task.cancel()
    assert task.cancelled()


async def test_cancelled_group_raises_the_cancellation() -> None:
    async def serve() -> None:
        async with TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(60))

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_time_limit_inside_is_no_cancellation_from_within() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError), cancellation_reported():
        await wait()


async def test_result_of_a_task_is_returned() -> None:
    async with TaskGroup() as tasks:
        task = tasks.create_task(asyncio.sleep(0, "done"))
    assert task.result() == "done"
