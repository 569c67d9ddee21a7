"""A task that ends by a cancellation from within fails its group; its own cancellation ends it quietly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from edge.foundation.errors import Refused, unwrap_group
from edge.foundation.task_group import CancelledWithinError, TaskGroup, cancellation_kept, cancellation_reported


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


async def test_cancelled_group_in_an_exit_stack_makes_no_circle() -> None:
    """The error became its own context: the gateway hung at 100 % CPU while it closed after a failure."""
    errors: list[asyncio.CancelledError] = []

    @asynccontextmanager
    async def replacing_cancellation() -> AsyncIterator[None]:
        with suppress(asyncio.CancelledError):
            yield
        raise asyncio.CancelledError

    async def serve() -> None:
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(TaskGroup())
                await stack.enter_async_context(replacing_cancellation())
                await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            errors.append(error)
            raise

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert errors[0].__context__ is not errors[0]


async def test_task_that_fails_during_the_exit_is_not_a_cancellation() -> None:
    """Python before 3.13 leaves a request of its own: an operation that failed ended its gateway."""

    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("unforeseen")

    with pytest.raises(ExceptionGroup):
        async with TaskGroup() as tasks:
            tasks.create_task(fail())
    owner = asyncio.current_task()
    assert owner is not None
    assert owner.cancelling() == 0


async def test_time_limit_inside_is_not_a_cancellation_from_within() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError), cancellation_reported():
        await wait()


async def test_result_of_a_task_is_returned() -> None:
    async with TaskGroup() as tasks:
        task = tasks.create_task(asyncio.sleep(0, "done"))
    assert task.result() == "done"


@pytest.mark.parametrize("failed_first", [True, False])
async def test_cancellation_is_kept_when_a_task_fails_at_the_same_time(*, failed_first: bool) -> None:
    """A loop that ignores the failure continued, and who had cancelled it waited for ever."""
    answered = asyncio.Event()
    tries = 0

    async def ask() -> None:
        await answered.wait()
        raise Refused("device", "the tool is busy")

    async def ask_for_ever() -> None:
        nonlocal tries
        while True:
            tries += 1
            with suppress(Refused), unwrap_group():
                async with TaskGroup() as tasks:
                    await asyncio.wait((tasks.create_task(ask()),))

    asking = asyncio.create_task(ask_for_ever())
    await asyncio.sleep(0.01)
    for step in (answered.set, asking.cancel) if failed_first else (asking.cancel, answered.set):
        step()
    await asyncio.wait((asking,), timeout=5)
    asking.cancel()
    assert (tries, asking.cancelled()) == (1, True)


async def test_cancellation_that_a_library_ignores_is_kept() -> None:
    async def ignore() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def serve() -> None:
        with cancellation_kept():
            await ignore()

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_time_limit_within_is_not_a_cancellation_to_keep() -> None:
    with cancellation_kept(), suppress(TimeoutError):
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()
