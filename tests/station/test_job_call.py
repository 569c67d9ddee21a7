"""The id of a run follows from the call that stored its job: the same call, the same id at each gateway."""

import uuid
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import Refused
from edge.model.isa95 import IdCall, OrderCall, Parameter, ReturnStatus
from edge.model.job_state import Cause, JobState
from edge.station.job_call import JobCall, call_digest, run_id_of
from tests.station.plant import LINEAR, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, instance, obliging, order

AT = "2026-11-26T16:00:00Z"
ORDER = OrderCall(job_order=order("J1", job_order_parameters=(Parameter(id="torque", value={"b": 1, "a": 2}),)))
CALL = JobCall(SCOPE, Cause.STORE_AND_START, ORDER, "urn:mes", "call-1", time=AT)
OTHER_ORDER = OrderCall(job_order=order("J1", job_order_parameters=(Parameter(id="torque", value={"b": 1, "a": 3}),)))
REORDERED = OrderCall(job_order=order("J1", job_order_parameters=(Parameter(id="torque", value={"a": 2, "b": 1}),)))


def test_run_id_is_a_uuid_of_version_5_that_stays_the_same() -> None:
    """A literal: a version that computes another id would run a job of a split line twice during its upgrade."""
    assert uuid.UUID(run_id_of(CALL)).version == 5
    assert run_id_of(CALL) == "6915214d-ab5a-5a49-8d5c-2de54e87fc8d"


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"source": "urn:other"}, False),
        ({"event_id": "call-2"}, False),
        ({"time": "2026-11-26T16:00:00.000Z"}, False),
        ({"arguments": OTHER_ORDER}, False),
        ({"method": Cause.STORE}, False),
        ({"scope": "station-2"}, False),
        ({"source": "urn:mescall", "event_id": "-1"}, False),
        ({"arguments": REORDERED}, True),
        ({"sent_at": 5, "expires_at": 7, "trace": {"traceparent": "00"}, "by": "anna"}, True),
    ],
)
def test_run_id_depends_on_source_id_time_and_arguments(changes: dict[str, object], *, is_same: bool) -> None:
    assert (run_id_of(replace(CALL, **changes)) == run_id_of(CALL)) is is_same


def test_digest_of_a_call_does_not_depend_on_its_sender() -> None:
    assert call_digest(replace(CALL, source="x", event_id="y", time="")) == call_digest(CALL)


async def command_ids(redis: RedisSettings, prefix: str, clock: Clock) -> list[str]:
    """Return the ids of the commands of the job of CALL at a gateway with a store of its own."""
    tool = FakeEquipment("tool")
    tool.replies = obliging
    settings = replace(redis, prefix=f"{redis.prefix}{prefix}")
    async with instance(settings, {TIGHTEN: tool}, clock) as plant, plant.at_work():
        await plant.teach("linear", LINEAR)
        assert (await plant.jobs.call(CALL)).status is ReturnStatus.NO_ERROR
        await plant.until_state("J1", JobState.ENDED)
    return [command.command_id for command in tool.commands]


async def test_both_sides_of_a_split_line_use_the_same_command_ids(redis: RedisSettings, clock: Clock) -> None:
    """Each side has a store of its own, as two primaries after a partition; equipment recognizes the second command."""
    one, other = await command_ids(redis, "one", clock), await command_ids(redis, "two", clock)
    assert one == other
    assert one[0] == f"J1/{run_id_of(CALL)}/a/1"


async def test_call_with_a_known_id_and_other_content_is_refused_as_repeated(plant: Plant) -> None:
    stored = await plant.jobs.call(CALL)
    assert await plant.jobs.call(replace(CALL, time="")) == stored
    for other in (
        replace(CALL, arguments=OTHER_ORDER),
        replace(CALL, method=Cause.STORE),
        replace(CALL, method=Cause.START, arguments=IdCall(job_order_id="J1")),
    ):
        with pytest.raises(Refused) as refusal:
            await plant.jobs.call(other)
        assert refusal.value.kind == "repeated_id"


async def test_answer_that_an_older_version_has_stored_is_returned(plant: Plant) -> None:
    answer = await plant.jobs.call(CALL)
    (key,) = [key async for key in marks(plant)]
    await plant.store.execute("SET", key, '{"status":1,"reasons":[]}')
    assert await plant.jobs.call(replace(CALL, arguments=OTHER_ORDER)) == answer


async def marks(plant: Plant) -> AsyncIterator[str]:
    for key in await plant.store.execute("KEYS", plant.store.keys.cededupe("*")):
        yield key


async def test_forgotten_call_whose_job_was_updated_since_is_refused(plant: Plant) -> None:
    stored = replace(CALL, method=Cause.STORE)
    await plant.jobs.call(stored)
    await plant.jobs.call(JobCall(SCOPE, Cause.UPDATE, OTHER_ORDER, "urn:mes", "call-2"))
    await forget(plant)
    with pytest.raises(Refused) as refusal:
        await plant.jobs.call(stored)
    assert refusal.value.kind == "repeated_id"


async def test_forgotten_call_is_new_only_with_another_time(plant: Plant) -> None:
    stored = replace(CALL, method=Cause.STORE)
    run_ids = []
    for job_call in (stored, stored, replace(stored, time="2026-11-27T16:00:00Z")):
        await plant.jobs.call(job_call)
        run_ids.append((await plant.job("J1")).correlation_id)
        await plant.ask(Cause.CANCEL, "J1")
        await forget(plant)
    assert run_ids[0] == run_ids[1] != run_ids[2]


async def forget(plant: Plant) -> None:
    """Remove the marks, as after `[retention] dedupe`."""
    for key in await plant.store.execute("KEYS", plant.store.keys.cededupe("*")):
        await plant.store.execute("DEL", key)
