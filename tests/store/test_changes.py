"""Every change of a job is read in order, from any position."""

import asyncio
from collections.abc import Iterable, Mapping

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.model.isa95 import JobOrder
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.store import changes, jobs
from edge.store.changes import Change, ResponseChange
from edge.store.client import Store
from edge.store.keys import Keys
from edge.store.reads import BEGINNING, position_key

SCOPE = "station-1"
NOW = 1_700_000_000_123


def for_host(store: Store) -> Keys:
    """Return the keys with the streams for other programs on this host."""
    return msgspec.structs.replace(store.keys, host_streams=True)


async def reported(store: Store, count: int, positions: Mapping[str, str]) -> list[Change]:
    found: list[Change] = []
    async for change in changes.follow(store, positions):
        found.append(change)
        if len(found) == count:
            break
    return found


async def note(store: Store, job_ids: Iterable[str], scope: str = SCOPE) -> None:
    for job_id in job_ids:
        status = JobStatus(JobState.ENDED, SubState.COMPLETED)
        await store.commit(changes.append_change(store.keys, scope, job_id, Cause.COMPLETE, status, NOW))


async def test_change_is_read_as_it_was_written(store: Store) -> None:
    await note(store, ["J ü"])
    await store.commit(changes.append_change(store.keys, SCOPE, "J2", Cause.RUN, JobStatus(JobState.RUNNING), NOW))
    first, second = await reported(store, 2, {SCOPE: "0-0"})
    status = JobStatus(JobState.ENDED, SubState.COMPLETED)
    assert first == Change(first.position, SCOPE, "J ü", Cause.COMPLETE, status, NOW)
    assert second.status == JobStatus(JobState.RUNNING)


async def test_follower_of_two_scopes_receives_changes_of_both(store: Store) -> None:
    await note(store, ["a"], "station-1")
    await note(store, ["b"], "station-2")
    heard = await reported(store, 2, {"station-1": "0-0", "station-2": "0-0"})
    assert {(change.scope, change.job_order_id) for change in heard} == {("station-1", "a"), ("station-2", "b")}


async def test_waiting_follower_receives_a_new_change(store: Store) -> None:
    following = asyncio.create_task(reported(store, 1, {SCOPE: "0-0"}))
    await asyncio.sleep(0)
    await note(store, ["J1"])
    async with asyncio.timeout(60):
        assert [change.job_order_id for change in await following] == ["J1"]


async def test_changes_beyond_one_reply_are_read_in_order(store: Store) -> None:
    names = [f"J{number}" for number in range(250)]
    await note(store, names)
    assert [change.job_order_id for change in await reported(store, 250, {SCOPE: "0-0"})] == names


async def test_follower_continues_at_its_saved_cursor(store: Store) -> None:
    await note(store, ["J1", "J2"])
    (first,) = await reported(store, 1, await changes.cursors(store, [SCOPE]))
    await store.commit(changes.save_cursor(store.keys, first, None))
    (second,) = await reported(store, 1, await changes.cursors(store, [SCOPE, "station-2"]))
    assert second.job_order_id == "J2"


async def test_the_cursor_and_the_published_position_are_separate(store: Store) -> None:
    await note(store, ["J1", "J2"])
    change, two = await reported(store, 2, {SCOPE: "0-0"})
    await store.commit(changes.save_cursor(store.keys, change, None))
    assert await changes.event_cursor(store, SCOPE) == change.position
    await store.commit(changes.save_event_cursor(store.keys, SCOPE, change.position))
    await store.commit(changes.save_cursor(store.keys, two, None))
    assert await changes.event_cursor(store, SCOPE) == change.position
    assert await changes.cursors(store, [SCOPE]) == {SCOPE: two.position}


async def test_the_latest_position_is_that_of_the_newest_change(store: Store) -> None:
    assert await changes.latest(store, [SCOPE]) == {SCOPE: "0-0"}
    await note(store, ["J1", "J2"])
    newest = (await reported(store, 2, {SCOPE: "0-0"}))[-1]
    assert await changes.latest(store, [SCOPE, "station-2"]) == {SCOPE: newest.position, "station-2": "0-0"}


async def test_change_streams_are_bounded(store: Store) -> None:
    status = JobStatus(JobState.RUNNING)
    commit = changes.append_change(for_host(store), SCOPE, "J1", Cause.RUN, status, NOW)
    commands = [*commit.operations] * 6000
    await store.read(commands)
    for stream in (store.keys.joborder_changes(SCOPE), store.keys.joborder_changes_global()):
        assert await store.execute("XLEN", stream) < changes.STREAM_LENGTH + 200


async def test_changes_for_consumers_on_this_host_are_bounded(store: Store) -> None:
    status, keys = JobStatus(JobState.ENDED, SubState.CLOSED), for_host(store)
    receiver = changes.notify_receiver(keys, SCOPE, "J1", Cause.STOP, status, NOW)
    responder = changes.notify_responder(keys, SCOPE, "J1", "R1", ResponseChange.UPDATE, status, NOW)
    for commit, stream in ((receiver, keys.event_receiver_list()), (responder, keys.event_responder_list())):
        await store.read([*commit.operations] * 6000)
        assert await store.execute("XLEN", stream) < changes.STREAM_LENGTH + 200
    ((_, reported),) = await store.execute("XREVRANGE", keys.event_responder_list(), "+", "-", "COUNT", 1)
    assert dict(reported if isinstance(reported, dict) else zip(reported[::2], reported[1::2], strict=True)) == {
        "event": "ResultUpdate",
        "job_response_id": "R1",
        "job_order_id": "J1",
        "scope": SCOPE,
        "ts": "2023-11-14T22:13:20.123+00:00",
        "state": "ENDED",
        "substate": "CLOSED",
    }


async def test_storing_and_removing_a_job_produce_no_event(store: Store) -> None:
    for cause in (Cause.STORE, Cause.CLEAR):
        commit = changes.notify_receiver(store.keys, SCOPE, "J1", cause, JobStatus(JobState.ENDED), NOW)
        assert commit.operations == ()


async def test_unreadable_change_is_skipped(store: Store) -> None:
    await note(store, ["J1"])
    stream = store.keys.joborder_changes(SCOPE)
    await store.execute("XADD", stream, "*", "change_type", "Dance", "job_order_id", "J2")
    await note(store, ["J3"])
    assert [change.job_order_id for change in await reported(store, 2, {SCOPE: "0-0"})] == ["J1", "J3"]
    newest = (await changes.latest(store, [SCOPE]))[SCOPE]
    between = [change.job_order_id async for change in changes.read_between(store, SCOPE, "0-0", newest)]
    assert between == ["J1", "J3"]


@pytest.mark.parametrize(
    "text", ["", "1", " 1-0", "1_0-0", "+1-0", "٣-0", "1-0\n", "1--1", f"0-{1 << 64}", f"{'9' * 25}-0"]
)
def test_invalid_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        position_key(text)


def test_greatest_redis_position_is_accepted() -> None:
    assert position_key(f"{(1 << 64) - 1}-0") == ((1 << 64) - 1, 0)


async def test_invalid_cursor_or_counter_is_reset(store: Store) -> None:
    await store.execute("HSET", store.keys.publisher_cursors(), SCOPE, "garbage")
    assert await changes.cursors(store, [SCOPE]) == {SCOPE: BEGINNING}
    for written in ("garbage", str(1 << 63)):
        await store.execute("SET", store.keys.pubseq(SCOPE), written)
        assert await changes.last_index(store, SCOPE) == 0
        assert await changes.next_index(store, SCOPE) == 1


async def test_change_with_the_scope_of_another_stream_is_skipped(store: Store) -> None:
    stray = ("job_order_id", "J0", "scope", "elsewhere", "change_type", "Store", "ts", "2026-01-01T00:00:00+00:00")
    stream = store.keys.joborder_changes(SCOPE)
    await store.execute("XADD", stream, "*", *stray, "state", "RUNNING", "substate", "")
    await note(store, ["J1"])
    assert [change.job_order_id for change in await reported(store, 1, {SCOPE: "0-0"})] == ["J1"]


async def test_result_update_is_in_the_stream_but_not_read_as_a_change(store: Store) -> None:
    """MicroDCS' consumers expect it: fault 9."""
    status = JobStatus(JobState.RUNNING)
    job = jobs.Job(order=JobOrder(job_order_id="J1"), scope=SCOPE, status=status, correlation_id="r", stored_at=NOW)
    await store.commit(jobs.save(for_host(store), None, job, ((Cause.RUN, status),), NOW))
    for stream in (store.keys.joborder_changes(job.scope), store.keys.joborder_changes_global()):
        types = [entry[1]["change_type"] for entry in await store.execute("XRANGE", stream, "-", "+")]
        assert types[-2:] == ["ResultUpdate", "Run"]
    with capture_logs() as logs:
        newest = await changes.latest(store, [job.scope])
        found = [change async for change in changes.read_between(store, job.scope, "0-0", newest[job.scope])]
    assert [change.cause for change in found][-1:] == [Cause.RUN]
    assert found[-1].position == newest[job.scope]
    assert logs == []


async def test_change_keeps_the_id_of_the_generation_that_wrote_it(store: Store) -> None:
    """A position may repeat in the next generation; a change that was replicated keeps its id there."""
    store.keys = msgspec.structs.replace(store.keys, generation_id="first")
    await note(store, ["J1"])
    store.keys = msgspec.structs.replace(store.keys, generation_id="second")
    await note(store, ["J2"])
    first, second = await reported(store, 2, {SCOPE: "0-0"})
    assert first.event_id == f"{SCOPE}/first/{first.position}"
    assert second.event_id == f"{SCOPE}/second/{second.position}"
    assert msgspec.structs.replace(first, generation="").event_id == f"{SCOPE}/{first.position}"


async def test_cursor_ahead_of_the_changes_skips_none_to_come(store: Store) -> None:
    await note(store, ["J1"])
    (change,) = await reported(store, 1, {SCOPE: "0-0"})
    ahead = f"{int(change.position.partition('-')[0]) + 60_000}-0"
    await store.execute("HSET", store.keys.publisher_cursors(), SCOPE, ahead)
    with capture_logs() as logs:
        assert await changes.start_position(store, SCOPE) == change.position
    assert [entry["event"] for entry in logs] == ["cursor is ahead of the changes"]


async def test_first_payload_of_an_event_is_kept(store: Store) -> None:
    assert await changes.keep_published(store, "s", "1-0", "first", 60) == "first"
    assert await changes.keep_published(store, "s", "1-0", "second", 60) == "first"
    assert await changes.keep_published(store, "s", "2-0", "other", 60) == "other"
    assert 0 < await store.execute("TTL", store.keys.publisher_event("s", "1-0")) <= 60
