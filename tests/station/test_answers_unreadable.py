"""An unreadable run, such as one of a newer release, does not block others."""

import pytest

from edge.config import RedisSettings
from edge.station.equipment import Task
from edge.store import version
from tests.station.plant import SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, instance
from tests.station.test_answers import SCANNING, started

pytestmark = pytest.mark.parametrize(("field", "text"), [("recipe", '{"steps": []}'), (version.FIELD, "99")])


async def test_unreadable_run_does_not_hide_commands_of_other_jobs(plant: Plant, field: str, text: str) -> None:
    await started(plant, "J1", "J2")
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), field, text)
    assert [command.job_id for command in await plant.answers.outstanding((SCOPE,), (TIGHTEN,))] == ["J2"]


async def test_event_skips_the_unreadable_run(
    plant: Plant, redis: RedisSettings, clock: Clock, tool: FakeEquipment, field: str, text: str
) -> None:
    await plant.teach("scan", SCANNING)
    await started(plant, "J1", "J2", master="scan")
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), field, text)
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="next") as other:
        assert await other.happens() == Task("J2", "s", {"bolt": 1})
        assert await other.happens() == Task("J2", "t", {})
        assert await other.happens() is None
