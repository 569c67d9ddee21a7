"""An operator releases the stops that equipment never confirmed."""

import pytest

from edge.errors import Refused
from edge.sfc.signal import Phase
from edge.station.release import release
from edge.store import safing
from edge.store.safing import SafingCommand
from tests.station.plant import TIGHTEN, FakeEquipment, Plant

STOP = SafingCommand(
    phase=Phase.STOP,
    command_id="J1/R/tighten/1",
    type_id=TIGHTEN,
    scope="station-1",
    job_id="J1",
    correlation_id="c",
    action="tighten",
    attempt=1,
    since=0,
)


@pytest.fixture
def equipment() -> dict[str, FakeEquipment]:
    return {}


async def test_release_names_operator_and_reason(plant: Plant) -> None:
    await plant.store.commit(safing.save(plant.store.keys, STOP))
    (released,) = await release(plant.runs, (TIGHTEN,), None, "kim", "air cut off")
    assert released == STOP
    (kept,) = await safing.load_all(plant.store)
    assert (kept.released_by, kept.release_reason) == ("kim", "air cut off")


@pytest.mark.parametrize(("type_id", "command_id"), [("other.v1", None), (TIGHTEN, "J2/R/tighten/1")])
async def test_nothing_open_is_refused(plant: Plant, type_id: str, command_id: str | None) -> None:
    await plant.store.commit(safing.save(plant.store.keys, STOP))
    with pytest.raises(Refused, match="is open"):
        await release(plant.runs, (type_id,), command_id, "kim", "air cut off")


@pytest.mark.parametrize(("by", "reason"), [("", "air cut off"), ("kim", ""), ("kim", "x" * 100_000)])
async def test_release_without_operator_or_reason_is_refused(plant: Plant, by: str, reason: str) -> None:
    with pytest.raises(Refused, match="operator"):
        await release(plant.runs, (TIGHTEN,), None, by, reason)
