"""Every entry of a large backlog is processed before the stream is trimmed."""

import asyncio
import os
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.model.job_state import Cause
from edge.store import jobs
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    none_active,
    obliging,
    order,
    until,
)
from tests.store.servers import own_server

pytestmark = pytest.mark.slow

WAITING = int(os.environ.get("EDGE_BACKLOG", "1500"))
SIDE_BY_SIDE = 50


async def store_all(plant: Plant) -> None:
    """Store as many jobs as requested, all allowed to start."""
    for first in range(0, WAITING, SIDE_BY_SIDE):
        ids = range(first, min(first + SIDE_BY_SIDE, WAITING))
        await asyncio.gather(*(plant.order(Cause.STORE_AND_START, order(f"J{number}")) for number in ids))


@pytest.mark.timeout(900)
@pytest.mark.untraced
async def test_every_job_of_a_backlog_is_executed_once(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    async with (
        own_server(Path(tmp_path_factory.mktemp("s")), "--appendfsync", "everysec") as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock, max_job_orders=WAITING) as plant,
    ):
        await plant.teach("linear", linear(action("a", "one")))
        await store_all(plant)
        stream = plant.store.keys.sfc_work(SCOPE)
        assert await plant.store.execute("XLEN", stream) == WAITING

        async def all_ended() -> bool:
            return await jobs.count_open(plant.store, SCOPE) == 0

        async with plant.at_work():
            await until(all_ended, deadline=800.0)
            await until(lambda: none_active(plant), deadline=120.0)
        assert await plant.store.execute("XLEN", stream) == 0
    assert len(tool.commands) == WAITING
    assert {command.job_id for command in tool.commands} == {f"J{number}" for number in range(WAITING)}
