import asyncio

import pytest

from edge.links.background_task import background_task


async def test_background_task_ends_with_its_block() -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with background_task(work(), "work"):
        await asyncio.sleep(0)
        assert not ended
    assert ended


async def test_exception_of_the_block_is_raised_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        async with background_task(asyncio.sleep(60), "work"):
            raise ZeroDivisionError


async def test_failed_background_task_ends_the_block() -> None:
    async def work() -> None:
        raise KeyError

    with pytest.raises(ExceptionGroup) as failure:
        async with background_task(work(), "work"):
            await asyncio.sleep(60)
    assert failure.group_contains(KeyError)


async def test_cancelled_block_cancels_the_background_task() -> None:
    async def block() -> None:
        async with background_task(asyncio.sleep(60), "work"):
            await asyncio.sleep(60)

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancellation_of_a_block_is_not_swallowed_by_failing_work() -> None:
    """The owner of the block would go on after its cancellation, and the program would never end."""

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise KeyError

    async def block() -> None:
        async with background_task(work(), "work"):
            await asyncio.sleep(60)

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
