import asyncio

import pytest

from edge.links.background_task import background_task


async def test_the_work_ends_with_the_block() -> None:
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


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with background_task(asyncio.sleep(60), "work"):
            raise ZeroDivisionError


async def test_work_that_fails_ends_the_block() -> None:
    async def work() -> None:
        raise KeyError

    with pytest.raises(ExceptionGroup) as failure:
        async with background_task(work(), "work"):
            await asyncio.sleep(60)
    assert failure.group_contains(KeyError)


async def test_cancelling_the_block_cancels_the_work() -> None:
    async def block() -> None:
        async with background_task(asyncio.sleep(60), "work"):
            await asyncio.sleep(60)

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
