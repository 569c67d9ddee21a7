"""The history of a job is written with each decision, lives as long as the job, and replays to the same run."""

import pytest
from msgspec.structs import replace

from edge.model.job_state import Cause
from edge.sfc.signal import Answer, Begun, Pause, Resume, Start
from edge.station.runs import Runs
from edge.station.stored_job import JobReplay, NotRecorded, RecordedRun, load_recorded, replay_recorded
from edge.store import runs
from tests.station.plant import KEEP_ENDED_MS, Clock, FakeEquipment, Plant, obliging, order


async def recorded(plant: Plant) -> RecordedRun:
    found = await load_recorded(plant.store, "J1")
    assert isinstance(found, RecordedRun), found
    return found


async def started(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()


async def worked(plant: Plant, tool: FakeEquipment) -> None:
    """Run the job J1 to its end."""
    tool.replies = obliging
    await started(plant)


async def test_every_decision_is_recorded_and_replayed(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    await started(plant)
    await plant.ask(Cause.PAUSE, "J1")
    clock.now += 5000
    await plant.ask(Cause.RESUME, "J1")
    await plant.answer(tool.commands[0], {"torque": 85.5})
    recorded_run = await recorded(plant)
    signals = [type(record.signal) for record in recorded_run.records if not isinstance(record.signal, Begun)]
    assert signals == [Start, Pause, Resume, Answer]
    replayed = replay_recorded(recorded_run)
    assert isinstance(replayed, JobReplay)
    assert (replayed.is_same, replayed.decisions) == (True, len(recorded_run.records))


async def test_decisions_of_two_instances_are_one_history(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant)
    await Runs(plant.store, plant.runs.clock, KEEP_ENDED_MS).signal("J1", Pause())
    await plant.answer(tool.commands[0], {})
    await plant.ask(Cause.RESUME, "J1")
    replayed = replay_recorded(await recorded(plant))
    assert isinstance(replayed, JobReplay)
    assert replayed.is_same


async def test_history_is_removed_with_its_job(plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    key = plant.store.keys.sfc_history("J1")
    assert await plant.store.execute("EXISTS", key) == 1
    await plant.ask(Cause.CLEAR, "J1")
    assert await plant.store.execute("EXISTS", key) == 0
    assert isinstance(await load_recorded(plant.store, "J1"), NotRecorded)


async def test_setting_of_0_disables_the_history(plant: Plant) -> None:
    plant.runs.context = replace(plant.runs.context, most_decisions=0)
    await started(plant)
    found = await load_recorded(plant.store, "J1")
    assert isinstance(found, NotRecorded)
    assert "[retention] decisions" in found.reason


async def test_run_of_an_earlier_release_continues_without_history(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant)
    keys = plant.store.keys
    await plant.store.execute("DEL", keys.sfc_history("J1"))
    await plant.store.execute("HSET", keys.sfc_execution("J1"), "rev", "3")
    plant.runs.invalidate("J1")
    plant.runs.outbox.drop_run("J1")
    await plant.answer(tool.commands[0], {})
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run is not None
    assert stored_run.run.associations
    assert isinstance(await load_recorded(plant.store, "J1"), NotRecorded)


async def test_truncated_history_is_listed_but_not_replayed(plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    await plant.store.execute("XTRIM", plant.store.keys.sfc_history("J1"), "MAXLEN", 2)
    recorded_run = await recorded(plant)
    assert len(recorded_run.records) == 2
    refused = replay_recorded(recorded_run)
    assert isinstance(refused, NotRecorded)
    assert "the earlier ones are gone" in refused.reason


@pytest.mark.damaged_runs
async def test_missing_record_is_found_by_the_replay(plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    key = plant.store.keys.sfc_history("J1")
    ((last_id, _),) = await plant.store.execute("XREVRANGE", key, "+", "-", "COUNT", 1)
    await plant.store.execute("XDEL", key, last_id)
    replayed = replay_recorded(await recorded(plant))
    assert isinstance(replayed, JobReplay)
    assert not replayed.is_same
    assert "state" in replayed.fields


async def test_unreadable_record_is_reported(plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    await plant.store.execute("XADD", plant.store.keys.sfc_history("J1"), "99999-1", "tick", "{")
    found = await load_recorded(plant.store, "J1")
    assert isinstance(found, NotRecorded)
    assert "the run of job 'J1' cannot be read: decision 99999: " in found.reason
