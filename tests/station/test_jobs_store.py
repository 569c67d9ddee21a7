"""A store that cannot write refuses a job with the reason and accepts it once writing works again."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import Cause, JobState
from edge.store import jobs
from tests.free_ports import free_port
from tests.station.plant import LINEAR, TIGHTEN, Clock, FakeEquipment, instance, obliging, order, until_true
from tests.store.servers import own_server

FAULTS = {
    "memory": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "replica": (("REPLICAOF", "127.0.0.1", str(free_port())), ("REPLICAOF", "NO", "ONE")),
    "cannot serve now": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
}
"""What the refusal names, how the fault is made, and how it is mended."""


@pytest.mark.parametrize("word", FAULTS)
async def test_call_is_refused_while_the_store_cannot_write(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock, word: str
) -> None:
    tool.replies = obliging
    make, repair = FAULTS[word]
    async with (
        own_server(Path(tmp_path_factory.mktemp("s"))) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
    ):
        await plant.teach("linear", {"steps": [{"name": "one", "initial": True}], "transitions": [], "actions": []})
        await plant.store.execute(*make)
        for _ in range(2):
            with pytest.raises(Unavailable, match=word) as caught:
                await plant.order(Cause.STORE_AND_START, order("J1"), event_id="e1")
            assert caught.value.advice
        assert await jobs.load(plant.store, "J1") is None
        await plant.store.execute(*repair)
        answer = await plant.order(Cause.STORE_AND_START, order("J1"), event_id="e1")
        assert answer.status is ReturnStatus.NO_ERROR
        await plant.until_state("J1", JobState.ENDED)


async def test_running_jobs_continue_when_the_store_is_writable_again(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    async with (
        own_server(Path(tmp_path_factory.mktemp("s"))) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
    ):
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await plant.store.execute("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="memory"):
            await plant.answer(tool.commands[0])
        await plant.store.execute("CONFIG", "SET", "maxmemory", "0")
        tool.replies = obliging
        # As a broker delivers an answer again that was not acknowledged.
        await plant.answer(tool.commands[0])
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]
