"""Invalid answers and answers of the wrong equipment affect no job of others."""

import pytest

from edge.model.job_state import Cause
from edge.station.answers import Answers
from edge.station.equipment import EquipmentAnswer
from edge.store import jobs, runs
from tests.station.plant import DEDUPE_MS, TIGHTEN, FakeEquipment, Plant, order


async def started(plant: Plant, tool: FakeEquipment) -> EquipmentAnswer:
    """Start a job, and return a good answer to its first command."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    return EquipmentAnswer(tool.commands[0].command_id, {"ok": True})


async def revision(plant: Plant) -> int:
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run
    return stored_run.revision


async def test_answer_to_a_command_of_other_equipment_is_ignored(plant: Plant, tool: FakeEquipment) -> None:
    answer = await started(plant, tool)
    before = await revision(plant)
    camera = Answers(plant.store, plant.runs, DEDUPE_MS, ["com.example.look.v1"])
    await camera.answer(answer)
    assert (await revision(plant), camera.stats.ignored) == (before, 1)
    await Answers(plant.store, plant.runs, DEDUPE_MS, [TIGHTEN]).answer(answer)
    assert await revision(plant) > before


async def test_very_long_error_is_truncated(plant: Plant, tool: FakeEquipment) -> None:
    answer = await started(plant, tool)
    await plant.answers.answer(EquipmentAnswer(answer.command_id, error="x" * 1_000_000))
    job = await jobs.load(plant.store, "J1")
    assert job
    assert job.error
    assert len(str(job.error)) < 70_000


@pytest.mark.parametrize("job_id", ["%ED%A0%80", "%00", "list:station-1", "x" * 60_000, ""])
async def test_answer_with_an_invalid_job_id_is_ignored(plant: Plant, job_id: str) -> None:
    await plant.answers.answer(EquipmentAnswer(f"{job_id}/run/a/1"))
    assert plant.answers.stats.ignored == 1
