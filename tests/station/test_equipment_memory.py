"""What equipment remembers survives the gateway."""

from collections.abc import Mapping

from edge.config import RedisSettings
from tests.station.plant import Clock, FakeEquipment, instance


async def test_memory_of_equipment_survives_a_restart(
    redis: RedisSettings, equipment: Mapping[str, FakeEquipment], clock: Clock
) -> None:
    async with instance(redis, equipment, clock) as before:
        await before.answers.remember("wrench", {"revisions": "1:3"})
        await before.answers.remember("wrench", {"last": "7"})
    async with instance(redis, equipment, clock) as after:
        assert await after.answers.recall("wrench") == {"revisions": "1:3", "last": "7"}
        assert await after.answers.recall("press") == {}
