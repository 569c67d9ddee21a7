"""The id of a run follows from the call that stored its job: the same call, the same id at each gateway."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import Refused, Unavailable
from edge.model.isa95 import IdCall, OrderCall, Parameter, ReturnStatus
from edge.model.job_state import Cause, JobState
from edge.station.job_call import UNKNOWN_AGE, JobCall, RefusalRecorder, call_digest, refuse_expired, run_id_of
from edge.store import dead_letters
from edge.store.client import Store
from edge.store.dead_letters import RefusedMessage
from edge.store.open_store import open_store
from tests.station.plant import LINEAR, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, instance, obliging, order
from tests.store.servers import own_server

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
    call_answer = await plant.jobs.call(CALL)
    assert await plant.jobs.call(replace(CALL, time="")) == call_answer
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
    job_call = replace(CALL, method=Cause.STORE)
    await plant.jobs.call(job_call)
    await plant.jobs.call(JobCall(SCOPE, Cause.UPDATE, OTHER_ORDER, "urn:mes", "call-2"))
    await forget(plant)
    with pytest.raises(Refused) as refusal:
        await plant.jobs.call(job_call)
    assert refusal.value.kind == "repeated_id"


async def test_forgotten_call_is_new_only_with_another_time(plant: Plant) -> None:
    call = replace(CALL, method=Cause.STORE)
    run_ids = []
    for job_call in (call, call, replace(call, time="2026-11-27T16:00:00Z")):
        await plant.jobs.call(job_call)
        run_ids.append((await plant.job("J1")).correlation_id)
        await plant.ask(Cause.CANCEL, "J1")
        await forget(plant)
    assert run_ids[0] == run_ids[1] != run_ids[2]


async def forget(plant: Plant) -> None:
    """Remove the marks, as after `[retention] dedupe`."""
    for key in await plant.store.execute("KEYS", plant.store.keys.cededupe("*")):
        await plant.store.execute("DEL", key)


def message(way: str, number: int) -> RefusedMessage:
    return RefusedMessage(way, "", str(number), "unreadable", "no JSON", b"{")


async def test_flood_of_refused_messages_is_stored_at_a_limited_rate(store: Store) -> None:
    seconds = 0.0
    recorder = RefusalRecorder(store, most=3, clock=lambda: seconds)
    for number in range(50):
        await recorder.record(message("flood", number))
    await recorder.record(message("other", 50))
    assert [item.event_id for item in await dead_letters.newest_refused(store, 10)] == ["50", "2", "1", "0"]
    assert await dead_letters.count_refused(store) == 51
    seconds = 11.0
    await recorder.record(message("flood", 51))
    assert (await dead_letters.newest_refused(store, 1))[0].event_id == "51"
    assert await dead_letters.count_refused(store) == 52


async def test_invented_topics_of_a_sender_share_a_limit(store: Store) -> None:
    recorder = RefusalRecorder(store, most=1, clock=lambda: 0.0)
    for number in range(150):
        await recorder.record(message(f"way {number}", number))
    assert len(await dead_letters.newest_refused(store, 1000)) == 101


async def test_refusals_of_an_outage_are_counted_after_it(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        seconds = 0.0
        recorder = RefusalRecorder(store, most=1, clock=lambda: seconds)
        await recorder.record(message("way", 1))
        await recorder.record(message("way", 2))
        await server.kill()
        seconds = 11.0
        with pytest.raises(Unavailable):
            await recorder.record(message("way", 3))
        await server.start()
        async with asyncio.timeout(30):
            while True:
                seconds += 11.0
                with contextlib.suppress(Unavailable):
                    await recorder.record(message("way", 3))
                    break
        assert await dead_letters.count_refused(store) == 3


@pytest.mark.parametrize("expires_at", [None, 1_000, 1_001])
def test_message_within_its_expiry_is_accepted(expires_at: int | None) -> None:
    refuse_expired(expires_at, 1_000)


@pytest.mark.parametrize(
    ("expires_at", "kind", "reason"), [(990, "expired", "10 ms ago"), (UNKNOWN_AGE, "retained", "may be of any age")]
)
def test_late_message_is_refused_with_the_reason(expires_at: int, kind: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refusal:
        refuse_expired(expires_at, 1_000)
    assert refusal.value.kind == kind
