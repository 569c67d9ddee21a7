"""A gateway that lags behind the removal of a job keeps no copy of a result that the job had, and a late one once."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge.config import RedisSettings
from edge.model.job_state import Cause, JobState
from edge.station.equipment import EquipmentAnswer
from edge.station.retention import Expiry, RetentionPolicy
from edge.store import dead_letters, dedupe, jobs
from tests.station.plant import DEDUPE_MS, TIGHTEN, Clock, FakeEquipment, Plant, instance
from tests.station.test_answers import started

RESULT = {"torque": 85, "result_id": "R-7"}
TRACE = {"channels": [{"name": "torque", "values": [1.0, 2.0], "interval_ms": 1.0}]}


@pytest.fixture
async def lagging(redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock) -> AsyncIterator[Plant]:
    """Another gateway on the store of the first one; it has the run as it was before the answer."""
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="lagging") as other:
        await started(plant, "J1")
        assert await other.runs.get("J1")
        yield other


async def clear(plant: Plant) -> None:
    await plant.ask(Cause.ABORT, "J1")
    await plant.until_state("J1", JobState.ABORTED)
    await plant.ask(Cause.CLEAR, "J1")
    assert await jobs.load(plant.store, "J1") is None


async def late_data(plant: Plant) -> list[str]:
    return [letter.details["data"] for letter in (await dead_letters.load_all(plant.store)).values()]


@pytest.mark.parametrize("result", [RESULT, {"trace": TRACE, "torque": 85.0}, {"b": 1, "a": [2.50, None, "ü"]}, 7])
async def test_lagging_gateway_keeps_no_result_that_a_cleared_job_had(
    plant: Plant, lagging: Plant, tool: FakeEquipment, result: Any
) -> None:
    await plant.answer(tool.commands[0], result)
    await clear(plant)
    for _ in range(2):
        await lagging.answer(tool.commands[0], result)
    assert await late_data(plant) == []
    assert (lagging.answers.stats.ignored, lagging.answers.stats.late) == (2, 0)


async def test_lagging_gateway_keeps_no_result_that_an_expired_job_had(
    plant: Plant, lagging: Plant, tool: FakeEquipment
) -> None:
    await plant.answer(tool.commands[0], RESULT)
    await plant.ask(Cause.ABORT, "J1")
    job = await plant.until_state("J1", JobState.ABORTED)
    policy = RetentionPolicy(0, dedupe_ms=DEDUPE_MS)
    await Expiry(plant.store, policy).remove(job, plant.runs.clock())
    assert await jobs.load(plant.store, "J1") is None
    await lagging.answer(tool.commands[0], RESULT)
    assert await late_data(plant) == []


async def test_late_result_of_a_cleared_job_is_kept_once_by_two_gateways(
    plant: Plant, lagging: Plant, tool: FakeEquipment
) -> None:
    """No gateway had it when the job was removed."""
    await clear(plant)
    for item in (plant, lagging, lagging):
        await item.answer(tool.commands[0], RESULT)
    assert await late_data(plant) == ['{"torque":85,"result_id":"R-7"}']
    assert (plant.answers.stats.late, lagging.answers.stats.late) == (1, 0)


async def test_late_result_that_was_kept_before_the_clear_is_kept_once(
    plant: Plant, lagging: Plant, tool: FakeEquipment
) -> None:
    await plant.ask(Cause.ABORT, "J1")
    await plant.answer(tool.commands[0], RESULT)
    await plant.ask(Cause.CLEAR, "J1")
    await lagging.answer(tool.commands[0], RESULT)
    assert len(await late_data(plant)) == 1


async def test_other_second_result_of_a_cleared_job_is_kept_once(
    plant: Plant, lagging: Plant, tool: FakeEquipment
) -> None:
    await plant.answer(tool.commands[0], RESULT)
    await clear(plant)
    other = RESULT | {"torque": 12}
    for element in (plant, lagging):
        await element.answers.answer(EquipmentAnswer(tool.commands[0].command_id, other))
    assert await late_data(plant) == ['{"torque":12,"result_id":"R-7"}']


async def test_result_of_a_cleared_job_is_found_by_its_id(plant: Plant, lagging: Plant, tool: FakeEquipment) -> None:
    """A device reports each result to all gateways; one that lags asks for it by its id."""
    command_id = tool.commands[0].command_id
    await plant.answer(tool.commands[0], {"results": {"1": RESULT, "2": {"result_id": "R-8"}}})
    await clear(plant)
    found = [await lagging.answers.has_result(command_id, text) for text in ("R-7", "R-8", "R-9")]
    assert found == [True, True, False]
    assert not await lagging.answers.has_result(command_id.replace("/1", "/2"), "R-7")


async def test_order_sent_before_the_removal_stays_removed(plant: Plant, lagging: Plant, tool: FakeEquipment) -> None:
    """The tombstone still says when the job was removed."""
    await plant.answer(tool.commands[0], RESULT)
    await clear(plant)
    removed_at = await lagging.store.fetch(dedupe.query_removal(plant.store.keys, "J1"))
    assert removed_at == plant.runs.clock()


async def test_results_of_a_cleared_job_do_not_concern_the_next_job_of_its_id(
    plant: Plant, lagging: Plant, tool: FakeEquipment
) -> None:
    """The answer of the former run was taken; its other result was not, and is kept."""
    (command,) = tool.commands
    await plant.answer(command, RESULT)
    await clear(plant)
    await started(plant, "J1")
    for entry in (RESULT, {"torque": 12}, {"torque": 12}):
        await lagging.answer(command, entry)
    assert await late_data(plant) == ['{"torque":12}']
    assert await lagging.answers.has_result(command.command_id, "R-7")
