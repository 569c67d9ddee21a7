"""An operator releases the stops that equipment never confirmed."""

import pytest

from edge.foundation.errors import Refused
from edge.model.isa95 import ReleasedStop
from edge.sfc.signal import Phase
from edge.station.intervene import ReleaseRequest, release
from edge.store import equipment_memory
from edge.store.equipment_memory import SafingCommand
from tests.station.plant import DEDUPE_MS, SCOPE, TIGHTEN, FakeEquipment, Plant

STOP = SafingCommand(
    phase=Phase.STOP,
    command_id="J1/R/tighten/1",
    type_id=TIGHTEN,
    scope=SCOPE,
    job_id="J1",
    correlation_id="c",
    action="tighten",
    attempt=1,
    since=0,
)
EQUIPMENT = {"wrench": (TIGHTEN,), "lamp": ("light.v1",)}


def request(**fields: object) -> ReleaseRequest:
    values = {"equipment": "wrench", "scopes": (SCOPE,), "by": "kim", "reason": "air cut off"}
    return ReleaseRequest(**values | {"source": "/mes", "event_id": "1"} | fields)  # type: ignore[arg-type]


@pytest.fixture
def equipment() -> dict[str, FakeEquipment]:
    return {}


async def test_release_names_operator_and_reason(plant: Plant) -> None:
    await plant.store.commit(equipment_memory.save_safing(plant.store.keys, STOP))
    (released,) = await release(plant.store, EQUIPMENT, request(), DEDUPE_MS)
    assert released == ReleasedStop(command="J1/R/tighten/1", phase="stop", job_order_id="J1")
    (safing_command,) = await equipment_memory.load_all_safing(plant.store)
    assert (safing_command.released_by, safing_command.release_reason) == ("kim", "air cut off")


async def test_repeated_release_gets_the_same_answer(plant: Plant) -> None:
    await plant.store.commit(equipment_memory.save_safing(plant.store.keys, STOP))
    first = await release(plant.store, EQUIPMENT, request(), DEDUPE_MS)
    assert await release(plant.store, EQUIPMENT, request(), DEDUPE_MS) == first


@pytest.mark.parametrize(
    "fields",
    [{"equipment": "lamp"}, {"command_id": "J2/R/tighten/1"}, {"scopes": ("elsewhere",)}],
    ids=["equipment", "command", "scope"],
)
async def test_release_without_an_open_safing_command_is_refused(plant: Plant, fields: dict[str, object]) -> None:
    await plant.store.commit(equipment_memory.save_safing(plant.store.keys, STOP))
    with pytest.raises(Refused, match="is open"):
        await release(plant.store, EQUIPMENT, request(**fields), DEDUPE_MS)


@pytest.mark.parametrize("fields", [{"by": ""}, {"reason": " "}, {"reason": "x" * 100_000}])
async def test_release_without_operator_or_reason_is_refused(plant: Plant, fields: dict[str, object]) -> None:
    with pytest.raises(Refused, match="operator"):
        await release(plant.store, EQUIPMENT, request(**fields), DEDUPE_MS)


async def test_release_of_unknown_equipment_is_refused(plant: Plant) -> None:
    with pytest.raises(Refused, match="no equipment 'wretch'"):
        await release(plant.store, EQUIPMENT, request(equipment="wretch"), DEDUPE_MS)
