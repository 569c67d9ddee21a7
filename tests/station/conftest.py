"""A station, its equipment and its clock."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.store.client import Store
from tests.station.plant import LINEAR, PHOTO, TIGHTEN, Clock, FakeEquipment, Plant


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
