"""Tests of lost commands that are sent again."""

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Refused
from edge.station.resend import resend
from edge.store.opening import open_store
from tests.station.plant import Clock, FakeEquipment, Plant, until_true
from tests.station.test_answers import started


async def test_lost_command_is_sent_again_under_its_id(
    plant: Plant, tool: FakeEquipment, redis: RedisSettings, clock: Clock
) -> None:
    await started(plant, "J1")
    async with open_store(redis, None) as store, plant.at_work():
        assert await resend(Plant(store, {}, clock).runs, "J1") == 1
        await until_true(lambda: len(tool.commands) == 2)
    first, again = tool.commands
    assert (again.command_id, first.offered_again, again.offered_again) == (first.command_id, False, True)


async def test_resend_of_a_job_that_does_not_run_is_refused(plant: Plant) -> None:
    with pytest.raises(Refused):
        await resend(plant.runs, "J1")
