"""A stored job is loaded with its run and its response, if they exist."""

import pytest

from edge.foundation.errors import Refused
from edge.model.job_state import Cause, JobState
from edge.sfc.run import Sending
from edge.sfc.signal import Begun
from edge.station.stored_job import StoredJob, find, load
from edge.store.client import Store
from tests.station.plant import Clock, FakeEquipment, Plant, obliging, order, until_true
from tests.store.breaks import break_confirmation, confirm


@pytest.mark.parametrize("job_id", ["J1", "", "list:station-1", "J\n1"])
async def test_absent_job_is_refused(store: Store, job_id: str) -> None:
    assert await find(store, job_id) is None
    with pytest.raises(Refused, match="there is no job order"):
        await load(store, job_id)


async def test_a_job_has_no_run_before_it_starts(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert await load(plant.store, "J1") == StoredJob(await plant.job("J1"), None, None, None)


async def test_ended_job_is_loaded_with_run_net_and_response(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
    stored_job = await load(plant.store, "J1")
    assert stored_job.run
    assert stored_job.net
    assert stored_job.response
    assert stored_job.response.job_order_id == stored_job.run.job_id == "J1"
    assert list(stored_job.net.steps) == ["one", "two"]


async def test_unreadable_job_is_refused_with_the_reason(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    with pytest.raises(Refused, match="the stored data of job order 'J1' cannot be decoded: DecodeError"):
        await find(plant.store, "J1")


async def test_command_in_an_outbox_is_unsent_once_it_must_have_been_removed(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.refused)
        just_now = await find(plant.store, "J1", lambda: clock.now + 900)
        later = await find(plant.store, "J1", lambda: clock.now + 1000)
    assert just_now
    assert just_now.run
    assert later
    (command_id,) = {association.command_id for association in just_now.run.associations.values()}
    assert just_now.unsent == {}
    assert later.unsent == {command_id: Sending.NOT_YET}


async def test_sent_command_without_its_note_may_have_been_sent(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    """It counted as not sent for as long as a majority of the sentinels was away."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.commands)
        fence = break_confirmation(plant.store)
        in_break = await find(plant.store, "J1", lambda: clock.now + 1000)
        confirm(fence)
        just_after = await find(plant.store, "J1", lambda: clock.now + 1000)
        assert in_break
        assert just_after
        assert in_break.unsent == just_after.unsent == {tool.commands[0].command_id: Sending.MAYBE}


async def test_begun_command_may_have_been_sent(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """The machine of the gateway that has sent it may be gone: its note is never written then."""
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.refused)
        (outgoing,) = plant.runs.outbox.unsent("J1")
        await plant.runs.signal("J1", Begun(outgoing.command_id, "gateway-2"))
        begun = await find(plant.store, "J1", lambda: clock.now + 1000)
        assert begun
        assert begun.unsent == {outgoing.command_id: Sending.MAYBE}
