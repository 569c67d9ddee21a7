"""Every change of a job is told in order, to whoever follows, from wherever they were."""

import asyncio
from collections.abc import Iterable, Mapping

from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.store import changes
from edge.store.changes import Change
from edge.store.client import Store

SCOPE = "station-1"
NOW = 1_700_000_000_123


async def told(store: Store, count: int, positions: Mapping[str, str]) -> list[Change]:
    found: list[Change] = []
    async for change in changes.follow(store, positions):
        found.append(change)
        if len(found) == count:
            break
    return found


async def note(store: Store, job_ids: Iterable[str], scope: str = SCOPE) -> None:
    for job_id in job_ids:
        status = JobStatus(JobState.ENDED, SubState.COMPLETED)
        await store.commit(changes.note(store.keys, scope, job_id, Cause.COMPLETE, status, NOW))


async def test_a_change_is_read_as_it_was_noted(store: Store) -> None:
    await note(store, ["J ü"])
    await store.commit(changes.note(store.keys, SCOPE, "J2", Cause.RUN, JobStatus(JobState.RUNNING), NOW))
    first, second = await told(store, 2, {SCOPE: "0-0"})
    status = JobStatus(JobState.ENDED, SubState.COMPLETED)
    assert first == Change(first.position, SCOPE, "J ü", Cause.COMPLETE, status, NOW)
    assert second.status == JobStatus(JobState.RUNNING)


async def test_who_follows_two_scopes_hears_of_both(store: Store) -> None:
    await note(store, ["a"], "station-1")
    await note(store, ["b"], "station-2")
    heard = await told(store, 2, {"station-1": "0-0", "station-2": "0-0"})
    assert {(change.scope, change.job_order_id) for change in heard} == {("station-1", "a"), ("station-2", "b")}


async def test_who_follows_hears_of_a_change_as_it_happens(store: Store) -> None:
    following = asyncio.create_task(told(store, 1, {SCOPE: "0-0"}))
    await asyncio.sleep(0)
    await note(store, ["J1"])
    async with asyncio.timeout(2):
        assert [change.job_order_id for change in await following] == ["J1"]


async def test_more_changes_than_one_reply_holds_come_in_order(store: Store) -> None:
    names = [f"J{number}" for number in range(250)]
    await note(store, names)
    assert [change.job_order_id for change in await told(store, 250, {SCOPE: "0-0"})] == names


async def test_who_was_away_goes_on_from_where_they_were(store: Store) -> None:
    await note(store, ["J1", "J2"])
    (first,) = await told(store, 1, await changes.cursors(store, [SCOPE]))
    await changes.save_cursor(store, first)
    (second,) = await told(store, 1, await changes.cursors(store, [SCOPE, "station-2"]))
    assert second.job_order_id == "J2"


async def test_the_latest_position_is_that_of_the_newest_change(store: Store) -> None:
    assert await changes.latest(store, [SCOPE]) == {SCOPE: "0-0"}
    await note(store, ["J1", "J2"])
    newest = (await told(store, 2, {SCOPE: "0-0"}))[-1]
    assert await changes.latest(store, [SCOPE, "station-2"]) == {SCOPE: newest.position, "station-2": "0-0"}


async def test_the_streams_do_not_grow_without_bound(store: Store) -> None:
    status = JobStatus(JobState.RUNNING)
    commit = changes.note(store.keys, SCOPE, "J1", Cause.RUN, status, NOW)
    commands = [(each.command, *each.arguments) for each in commit.operations] * 6000
    await store.read(commands)
    for stream in (store.keys.joborder_changes(SCOPE), store.keys.joborder_changes_global()):
        assert await store.execute("XLEN", stream) < changes.STREAM_LENGTH + 200
