"""Tests of the parts of every scene: the deadline, failures, and waiting for a condition."""

import asyncio
import sys
from pathlib import Path

import pytest

from edge.config import load_settings
from edge.features.simulator.demo_parts import edge_command, limit_demo, scene_settings, wait_until
from edge.foundation.errors import Unavailable


async def test_first_failure_of_a_part_ends_the_demo() -> None:
    async def fail_twice() -> None:
        async with limit_demo() as limit:
            limit.give_up(Unavailable("the broker ended"))
            limit.give_up(Unavailable("the gateway ended"))
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="the broker ended"):
        await fail_twice()


async def test_finished_demo_has_no_time_limit() -> None:
    async with limit_demo() as limit:
        limit.lift()
        assert limit.failure is None


async def test_wait_returns_whether_the_condition_became_true() -> None:
    async def is_true() -> bool:
        return True

    assert await wait_until(lambda: True, 1)
    assert await wait_until(is_true, 1)
    assert not await wait_until(lambda: False, 0.01)


def test_scene_ignores_the_station_files_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text(scene_settings(tmp_path, "mqtt://127.0.0.1:1", "station-1"))
    assert not load_settings(file, {}, {}).station.files


def test_command_line_runs_this_interpreter() -> None:
    assert edge_command("run") == (sys.executable, "-P", "-m", "edge", "run")
