"""Events are also written to streams for other programs on this host, if the settings enable them."""

import pytest

from edge.config import RedisSettings
from edge.model.job_state import Cause, JobState
from edge.store.client import Store
from edge.store.keys import Keys
from edge.store.reads import entries
from tests.station.plant import FakeEquipment, Plant, obliging, order


@pytest.fixture(params=["all", "own"])
def redis(valkey: str, unique: str, request: pytest.FixtureRequest) -> RedisSettings:
    """Settings that lead to keys of this test only, with and without these streams."""
    return RedisSettings(url=valkey, prefix=unique, streams=request.param)


async def types(store: Store, stream: str, field: str) -> list[tuple[str, str]]:
    """Return type and state of each entry."""
    found = await store.execute("XRANGE", stream, "-", "+")
    return [(entry.fields[field], entry.fields["state"]) for entry in entries(found)]


async def test_streams_for_other_programs_are_written_if_configured(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE, order("J1"))
    await plant.ask(Cause.START, "J1")
    async with plant.at_work():
        await plant.until_state("J1", JobState.ENDED)
    await plant.ask(Cause.CLEAR, "J1")
    store, keys = plant.store, plant.store.keys
    receiver = await types(store, keys.event_receiver_list(), "event")
    responder = await types(store, keys.event_responder_list(), "event")
    all_scopes = await types(store, keys.joborder_changes_global(), "change_type")
    if keys == Keys(keys.prefix):
        assert receiver == responder == all_scopes == []
        return
    assert [event for event, _ in receiver] == ["Start", "Run", "Complete"]
    assert responder == [("ResultUpdate", "RUNNING"), ("ResultUpdate", "ENDED"), ("ResultRemoval", "ENDED")]
    moves = ["Store", "Start", "ResultUpdate", "Run", "ResultUpdate", "Complete", "Clear"]
    assert [change for change, _ in all_scopes] == moves
