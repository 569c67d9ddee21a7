"""Steps, commands by equipment type and ends of runs are counted once."""

import pytest

from edge.model.job_state import Cause, JobState
from edge.sfc.run import Outcome
from edge.sfc.signal import Phase
from edge.station.active_runs import Activity
from edge.station.equipment import EquipmentAnswer
from edge.store.client import Store
from tests.station.plant import (
    LINEAR,
    PHOTO,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    obliging,
    order,
)


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
async def plant(store: Store, tool: FakeEquipment) -> Plant:
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    return plant


@pytest.fixture
def activity(plant: Plant) -> Activity:
    activity = Activity()
    plant.runs.listeners.append(activity.watch)
    return activity


async def test_steps_commands_and_end_of_a_run_are_counted(
    plant: Plant, tool: FakeEquipment, activity: Activity
) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.until_state("J1", JobState.ENDED)
    assert activity.steps == {SCOPE: 2}
    assert activity.commands == {(TIGHTEN, Phase.START): 2}
    assert activity.ended == {(SCOPE, Outcome.COMPLETED): 1}


async def test_end_of_a_run_with_late_answers_is_counted_once(
    plant: Plant, tool: FakeEquipment, activity: Activity
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.ask(Cause.ABORT, "J1")
    await plant.drive()
    for command in tool.commands:
        await plant.answers.answer(EquipmentAnswer(command.command_id, {"ok": True}))
    assert activity.commands == {(TIGHTEN, Phase.START): 1, (TIGHTEN, Phase.STOP): 1}
    assert activity.ended == {(SCOPE, Outcome.ABORTED): 1}
