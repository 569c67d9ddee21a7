"""Recipes are checked by one process, in turn, within limits; it ends after a while without a check."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.features.page.recipe_check import check_recipe
from edge.features.page.recipe_process import RecipeProcess
from edge.foundation.errors import Refused, Unavailable
from tests.conftest import WaitUntil
from tests.station.plant import LINEAR


@pytest_asyncio.fixture
async def process() -> AsyncIterator[RecipeProcess]:
    """A process with short limits."""
    found = RecipeProcess(within_s=60, idle_s=60, most_waiting=3)
    yield found
    await found.close()


async def test_checks_at_once_have_each_its_own_result(process: RecipeProcess) -> None:
    whole, empty = await asyncio.gather(process.check(LINEAR, ()), process.check({"steps": []}, ()))
    assert (whole, empty) == (check_recipe(LINEAR, ()), check_recipe({"steps": []}, ()))


async def test_check_beyond_the_waiting_ones_is_refused(process: RecipeProcess) -> None:
    waiting = [asyncio.create_task(process.check(LINEAR, ())) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="3 recipes wait"):
        await process.check(LINEAR, ())
    await asyncio.gather(*waiting)


async def test_killed_process_is_reported_and_the_next_check_works(process: RecipeProcess) -> None:
    await process.check(LINEAR, ())
    os.kill(pid_of(process), signal.SIGKILL)
    with pytest.raises(Unavailable, match="has ended"):
        await process.check(LINEAR, ())
    assert not (await process.check(LINEAR, ())).faults


async def test_check_that_takes_too_long_is_ended() -> None:
    slow = RecipeProcess(within_s=0)
    with pytest.raises(Unavailable, match="took more than 0 s"):
        await slow.check(LINEAR, ())


async def test_cancelled_check_leaves_no_result_for_the_next(process: RecipeProcess) -> None:
    await process.check(LINEAR, ())
    cancelled = asyncio.create_task(process.check(LINEAR, ()))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (await process.check({"steps": []}, ())).faults


async def test_idle_process_ends_by_itself(wait_until: WaitUntil) -> None:
    process = RecipeProcess(idle_s=0.01)
    await process.check(LINEAR, ())
    pid = pid_of(process)
    await wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60)
    assert not (await process.check(LINEAR, ())).faults
    await process.close()


def pid_of(process: RecipeProcess) -> int:
    assert process.pid is not None
    return process.pid
