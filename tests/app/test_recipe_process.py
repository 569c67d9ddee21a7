"""Recipes are checked by one process, in turn, within limits; it ends after a while without a check."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from edge.app.recipe_process import LENGTH_BYTES, RecipeProcess, serve
from edge.features.page.recipe_check import check_recipe
from edge.features.page.recipe_models import RecipeResult
from edge.features.page.tools import check_apart
from edge.foundation.errors import LocalFault, Refused
from edge.foundation.text import ENGLISH
from tests.conftest import WaitUntil
from tests.station.plant import LINEAR

_CHECKS = "edge.features.page.recipe_check"


@pytest_asyncio.fixture
async def process() -> AsyncIterator[RecipeProcess]:
    """A process with short limits."""
    found = RecipeProcess(_CHECKS, within_s=60, idle_s=60, most_waiting=3)
    yield found
    await found.close()


async def test_checks_at_once_have_each_its_own_result(process: RecipeProcess) -> None:
    whole, empty = await asyncio.gather(check(process, LINEAR, ()), check(process, {"steps": []}, ()))
    assert (whole, empty) == (check_recipe(LINEAR, ()), check_recipe({"steps": []}, ()))


async def test_check_beyond_the_waiting_ones_is_refused(process: RecipeProcess) -> None:
    waiting = [asyncio.create_task(check(process, LINEAR, ())) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="3 requests about recipes wait"):
        await check(process, LINEAR, ())
    await asyncio.gather(*waiting)


async def test_killed_process_is_reported_and_the_next_check_works(process: RecipeProcess) -> None:
    await check(process, LINEAR, ())
    os.kill(pid_of(process), signal.SIGKILL)
    with pytest.raises(LocalFault, match="has ended"):
        await check(process, LINEAR, ())
    assert not (await check(process, LINEAR, ())).faults


def test_killed_process_is_replaced_under_the_loop_of_the_gateway(wait_until: WaitUntil) -> None:
    """With uvloop each later check was a defect of this software, until the gateway was started again."""

    async def run() -> None:
        process = RecipeProcess(_CHECKS)
        await check(process, LINEAR, ())
        pid = pid_of(process)
        os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60)
        with pytest.raises(LocalFault, match="has ended"):
            await check(process, LINEAR, ())
        assert not (await check(process, LINEAR, ())).faults
        await process.close()

    uvloop.run(run())


async def test_check_that_takes_too_long_is_ended() -> None:
    slow = RecipeProcess(_CHECKS, within_s=0)
    with pytest.raises(LocalFault, match="took more than 0 s"):
        await check(slow, LINEAR, ())


async def test_cancelled_check_leaves_no_result_for_the_next(process: RecipeProcess) -> None:
    await check(process, LINEAR, ())
    cancelled = asyncio.create_task(check(process, LINEAR, ()))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (await check(process, {"steps": []}, ())).faults


async def test_idle_process_ends_by_itself(wait_until: WaitUntil) -> None:
    process = RecipeProcess(_CHECKS, idle_s=0.01)
    await check(process, LINEAR, ())
    pid = pid_of(process)
    await wait_until(lambda: not Path(f"/proc/{pid}").exists(), 60)
    assert not (await check(process, LINEAR, ())).faults
    await process.close()


def framed(request: bytes) -> bytes:
    return len(request).to_bytes(LENGTH_BYTES, "big") + request


def test_requests_are_answered_one_after_the_other() -> None:
    results = io.BytesIO()
    serve(io.BytesIO(framed(b"one") + framed(b"")), results, lambda request: request + b"!")
    assert results.getvalue() == framed(b"one!") + framed(b"!")


def test_input_that_ends_within_a_head_ends_the_program() -> None:
    results = io.BytesIO()
    serve(io.BytesIO(b"\x00"), results, lambda request: request)
    assert results.getvalue() == b""


def pid_of(process: RecipeProcess) -> int:
    assert process.pid is not None
    return process.pid


async def check(process: RecipeProcess, recipe: object, active: tuple[str, ...]) -> RecipeResult:
    return await check_apart(process.ask, recipe, active, ENGLISH)
