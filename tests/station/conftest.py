"""A station, its equipment and its clock."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.model.job_state import Cause
from edge.store.client import Store
from tests.station.plant import (
    LINEAR,
    PHOTO,
    SUPERVISED,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    order,
    until_true,
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
def equipment(tool: FakeEquipment) -> dict[str, FakeEquipment]:
    """What takes each command type."""
    return {TIGHTEN: tool, PHOTO: tool}


@pytest_asyncio.fixture
async def plant(store: Store, equipment: dict[str, FakeEquipment], clock: Clock) -> AsyncIterator[Plant]:
    """A station that knows the work master `linear` and does not work yet."""
    station = Plant(store, equipment, clock)
    await station.teach("linear", LINEAR)
    yield station


@pytest.fixture
async def running(plant: Plant, tool: FakeEquipment) -> AsyncIterator[Plant]:
    """A plant whose job J1 has sent the command `a`, which is due in five seconds."""
    await plant.teach("supervised", SUPERVISED)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "supervised"))
        await until_true(lambda: tool.received() == ["a"])
        yield plant
