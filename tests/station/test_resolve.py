"""Tests of the operator's decision about an unknown outcome, and of lost commands that are sent again."""

import pytest

from edge.config import RedisSettings
from edge.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.sfc.run import Outcome
from edge.sfc.signal import Resolution
from edge.station.equipment import OutcomeUnknown
from edge.station.resolve import ResolveRequest, resend, resolve
from edge.store.opening import open_store
from tests.station.plant import DEDUPE_MS, SCOPE, Clock, FakeEquipment, Plant, until_true
from tests.station.test_answers import started


def request(resolution: Resolution, event_id: str = "e1", **fields: object) -> ResolveRequest:
    values = {"scope": SCOPE, "job_id": "J1", "action": "a", "by": "ops", "reason": "seen", "source": "cli"} | fields
    return ResolveRequest(resolution=resolution, event_id=event_id, **values)  # type: ignore[arg-type]


async def unknown(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answers.answer(OutcomeUnknown(tool.commands[0].command_id, "no result"))


async def test_resolved_as_done_the_job_goes_on_with_the_data(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    answer = await resolve(plant.runs, request(Resolution.DONE, data={"torque": 85}), DEDUPE_MS)
    assert answer.status is ReturnStatus.NO_ERROR
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_resolved_by_repeat_the_action_starts_under_a_new_id(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    for _ in range(2):
        await resolve(plant.runs, request(Resolution.REPEAT), DEDUPE_MS)
    await plant.drive()
    assert [each.attempt for each in tool.commands] == [1, 2]


async def test_resolved_as_failed_the_job_fails(plant: Plant, tool: FakeEquipment) -> None:
    await unknown(plant, tool)
    await resolve(plant.runs, request(Resolution.FAILED, reason="the head is torn off"), DEDUPE_MS)
    loaded = await plant.runs.load("J1")
    assert loaded
    assert loaded.stored.run.outcome is Outcome.FAILED
    assert "the head is torn off" in (loaded.job.error or "")


async def test_resolve_is_refused_where_nothing_is_unknown(plant: Plant) -> None:
    await started(plant, "J1")
    answer = await resolve(plant.runs, request(Resolution.DONE), DEDUPE_MS)
    assert answer.status is ReturnStatus.INVALID_JOB_ORDER_STATUS
    other = await resolve(plant.runs, request(Resolution.DONE, job_id="J9", event_id="e2"), DEDUPE_MS)
    assert other.status is ReturnStatus.UNKNOWN_JOB_ORDER_ID
    for missing in ({"by": ""}, {"reason": " "}):
        with pytest.raises(Refused):
            await resolve(plant.runs, request(Resolution.DONE, **missing), DEDUPE_MS)


async def test_lost_command_is_sent_again_under_its_id(
    plant: Plant, tool: FakeEquipment, redis: RedisSettings, clock: Clock
) -> None:
    await started(plant, "J1")
    async with open_store(redis, None) as store, plant.at_work():
        assert await resend(Plant(store, {}, clock).runs, "J1") == 1
        await until_true(lambda: len(tool.commands) == 2)
    first, again = tool.commands
    assert (again.command_id, first.offered_again, again.offered_again) == (first.command_id, False, True)


async def test_resend_of_a_job_that_does_not_run_is_refused(plant: Plant) -> None:
    with pytest.raises(Refused):
        await resend(plant.runs, "J1")
