"""Tests of the operator's decision about an unknown outcome."""

import pytest

from edge.foundation.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.sfc.run import Outcome
from edge.sfc.signal import Resolution, Resolve
from edge.station.equipment import OutcomeUnknown
from edge.station.intervene import InterventionRequest, intervene
from tests.station.plant import DEDUPE_MS, SCOPE, FakeEquipment, Plant
from tests.station.test_answers import started


def request(resolution: Resolution, event_id: str = "e1", job_id: str = "J1", **fields: object) -> InterventionRequest:
    signal = Resolve("a", resolution, **({"by": "ops", "reason": "seen"} | fields))  # type: ignore[arg-type]
    return InterventionRequest(scope=SCOPE, job_id=job_id, signal=signal, source="cli", event_id=event_id)


async def unknown(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "no result"))


async def test_action_resolved_as_done_continues_the_job_with_its_data(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    answer = await intervene(plant.runs, request(Resolution.DONE, data={"torque": 85}), DEDUPE_MS)
    assert answer.status is ReturnStatus.NO_ERROR
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_action_resolved_by_repeat_starts_with_a_new_id(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    for _ in range(2):
        await intervene(plant.runs, request(Resolution.REPEAT), DEDUPE_MS)
    await plant.drive()
    assert [command.attempt for command in tool.commands] == [1, 2]


async def test_action_resolved_as_failed_fails_the_job(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    await intervene(plant.runs, request(Resolution.FAILED, reason="the head is torn off"), DEDUPE_MS)
    loaded = await plant.runs.load("J1")
    assert loaded
    assert loaded.stored.run.outcome is Outcome.FAILED
    assert "the head is torn off" in str(loaded.job.error)


async def test_resolve_without_an_unknown_outcome_is_refused(plant: Plant) -> None:
    await started(plant, "J1")
    answer = await intervene(plant.runs, request(Resolution.DONE), DEDUPE_MS)
    assert answer.status is ReturnStatus.INVALID_JOB_ORDER_STATUS
    other = await intervene(plant.runs, request(Resolution.DONE, job_id="J9", event_id="e2"), DEDUPE_MS)
    assert other.status is ReturnStatus.UNKNOWN_JOB_ORDER_ID
    for missing in ({"by": ""}, {"reason": " "}):
        with pytest.raises(Refused):
            await intervene(plant.runs, request(Resolution.DONE, **missing), DEDUPE_MS)
