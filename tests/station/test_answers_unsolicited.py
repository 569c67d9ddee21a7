"""Unsolicited answers are sampled and counted; an answer that a command needs is always handled."""

import pytest

from edge.model.job_state import Cause, JobState
from edge.station.answers import Answers
from edge.station.equipment import EquipmentAnswer
from edge.store import dead_letters
from edge.store.bounds import BoundedCount, MarksBySender
from tests.station.plant import DEDUPE_MS, FakeEquipment, Plant, order

_SAMPLE = 60


async def _after_a_flood(plant: Plant) -> Answers:
    answers = Answers(plant.store, plant.runs, DEDUPE_MS, name="wrench")
    for number in range(_SAMPLE):
        assert await answers.admits(f"stranger {number}")
    return answers


@pytest.mark.parametrize("command", [None, "", "stranger", "none/run/tighten/1", "joborder:x/run/tighten/1"])
async def test_answer_beyond_the_sample_is_counted_only(plant: Plant, command: str | None) -> None:
    answers = await _after_a_flood(plant)
    assert not await answers.admits(command)
    assert answers.stats.unsolicited == 1


async def test_awaited_answer_is_admitted_in_a_flood(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    answers = await _after_a_flood(plant)
    (command,) = tool.commands
    assert await answers.admits(command.command_id)
    # After a take-over, or in another gateway of the store, no cache knows the job.
    plant.runs.invalidate_all()
    assert await answers.admits(command.command_id)
    assert not await answers.admits(f"{command.command_id}0")
    await answers.answer(EquipmentAnswer(command.command_id, {"ok": True}))
    assert not await answers.admits(command.command_id)


async def test_late_result_of_a_command_is_kept_in_a_flood(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await plant.ask(Cause.ABORT, "J1")
    await plant.until_state("J1", JobState.ABORTED)
    answers = await _after_a_flood(plant)
    (command,) = tool.commands
    assert await answers.admits(command.command_id)
    await answers.answer(EquipmentAnswer(command.command_id, {"ok": True}))
    assert [letter.job_id for letter in (await dead_letters.load_all(plant.store)).values()] == ["J1"]


async def test_sender_near_its_share_of_marks_is_not_sampled(plant: Plant) -> None:
    answers = Answers(plant.store, plant.runs, DEDUPE_MS, name="wrench")
    plant.store.marks_by_sender = MarksBySender({"events:wrench": BoundedCount(125, 250)})
    assert not await answers.admits(None)
