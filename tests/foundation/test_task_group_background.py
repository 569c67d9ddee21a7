import asyncio

import pytest

from edge.foundation.task_group import CancelledWithinError, background_task


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
    """The owner of the block would continue after its cancellation, and the program would never end."""

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


async def test_work_cancelled_from_within_ends_the_block() -> None:
    """A service that awaited a cancelled future was gone without a trace, and its block continued without it."""
    awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await awaited

    async def block() -> None:
        async with background_task(work(), "work"), asyncio.timeout(10):
            await asyncio.sleep(0)
            awaited.cancel()
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failure:
        await block()
    assert failure.group_contains(CancelledWithinError, match="'work'")
    assert not cancellations()


async def test_work_cancelled_from_within_at_the_end_of_the_block() -> None:
    awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await awaited

    async def block() -> None:
        async with background_task(work(), "work"):
            await asyncio.sleep(0)
            awaited.cancel()
            await asyncio.sleep(0)

    with pytest.raises(ExceptionGroup) as failure:
        await block()
    assert failure.group_contains(CancelledWithinError)
    await asyncio.sleep(0)
    assert not cancellations()


@pytest.mark.parametrize("turns", range(4))
async def test_cancellation_is_not_lost_when_the_work_fails_meanwhile(turns: int) -> None:
    """The owner is cancelled before, in and after the turn in which the work fails."""
    fails = asyncio.Event()

    async def work() -> None:
        await fails.wait()
        raise KeyError

    async def block() -> None:
        async with background_task(work(), "work"):
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    fails.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, ExceptionGroup)) as ended:
        await task
    assert ended.type is asyncio.CancelledError or turns == 3


async def test_cancellation_is_not_lost_while_the_work_ends() -> None:
    ends, fails = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.set()
            try:
                await fails.wait()
            finally:
                raise KeyError

    async def block() -> None:
        async with background_task(work(), "work"):
            await asyncio.sleep(0)

    task = asyncio.create_task(block())
    await ends.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_failed_work_leaves_no_cancellation_to_the_owner() -> None:
    """A TaskGroup of Python 3.11 and 3.12 leaves one behind when a task fails after the block."""

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError

    with pytest.raises(ExceptionGroup):
        async with background_task(work(), "work"):
            await asyncio.sleep(0)
    assert not cancellations()


async def test_exceptions_of_block_and_work_at_once_leave_no_cancellation() -> None:
    async def work() -> None:
        raise KeyError

    async def block() -> None:
        async with background_task(work(), "work"):
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as failure:
        await block()
    assert failure.group_contains(KeyError)
    await asyncio.sleep(0)
    assert not cancellations()


def cancellations() -> int:
    """Return how often the running test is being cancelled."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()
