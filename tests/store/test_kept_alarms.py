"""Alarms in the store: kept while they are not normal, guarded by one revision, with a stream of changes."""

from msgspec.structs import replace

from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.kept_alarms import AlarmChange, StoredAlarms
from edge.store.reads import BEGINNING

ACTIVE = Alarm(
    id="a", rule="r", subject="s", active=ActiveState.ACTIVE, acknowledgement=AckState.UNACKNOWLEDGED, severity=5
)
NORMAL = replace(ACTIVE, active=ActiveState.INACTIVE, acknowledgement=AckState.CONFIRMED)
RAISED = AlarmChange(ACTIVE, AlarmChangeKind.RAISED, "pause")


async def test_alarm_is_kept_until_it_is_normal(store: Store) -> None:
    empty = await alarms.load(store)
    assert empty == StoredAlarms(0, {})
    assert isinstance(await store.commit(alarms.save(store.keys, empty, [RAISED])), Committed)
    raised = await alarms.load(store)
    assert raised == alarms.applied(empty, [RAISED]) == StoredAlarms(1, {"a": ACTIVE})
    over = AlarmChange(NORMAL, AlarmChangeKind.ACKNOWLEDGED)
    await store.commit(alarms.save(store.keys, raised, [over]))
    assert await alarms.load(store) == alarms.applied(raised, [over]) == StoredAlarms(2, {})


async def test_one_alarm_is_read_with_the_revision_of_all(store: Store) -> None:
    other = AlarmChange(replace(ACTIVE, id="b"), AlarmChangeKind.RAISED)
    await store.commit(alarms.save(store.keys, await alarms.load(store), [RAISED, other]))
    assert await alarms.load_one(store, "a") == StoredAlarms(1, {"a": ACTIVE})
    assert await alarms.load_one(store, "none") == await alarms.load_one(store, "rev") == StoredAlarms(1, {})


async def test_second_commit_of_the_same_revision_is_stale(store: Store) -> None:
    empty = await alarms.load(store)
    await store.commit(alarms.save(store.keys, empty, [RAISED]))
    assert isinstance(await store.commit(alarms.save(store.keys, empty, [RAISED])), Stale)


async def test_empty_change_list_writes_no_revision(store: Store) -> None:
    await store.commit(alarms.save(store.keys, StoredAlarms(9, {}), []))
    assert await alarms.load(store) == StoredAlarms(0, {})
    assert alarms.applied(StoredAlarms(9, {}), []) == StoredAlarms(9, {})


async def test_changes_are_followed_from_a_cursor(store: Store) -> None:
    await store.commit(alarms.save(store.keys, StoredAlarms(0, {}), [RAISED]))
    await store.execute("XADD", store.keys.alarm_changes(), "*", "kind", "nonsense")
    await store.commit(alarms.save(store.keys, StoredAlarms(1, {}), [RAISED]))
    assert await alarms.cursor(store, "reader") == BEGINNING
    alarm_changes = []
    async for change in alarms.follow(store, BEGINNING):
        alarm_changes.append(change)
        await store.commit(alarms.save_cursor(store.keys, "reader", change.position))
        if len(alarm_changes) == 2:
            break
    assert [replace(alarm_change.alarm) for alarm_change in alarm_changes] == [ACTIVE, ACTIVE]
    assert [alarm_change.action for alarm_change in alarm_changes] == ["pause", "pause"]
    assert await alarms.cursor(store, "reader") == alarm_changes[-1].position
    assert await alarms.newest(store, 9) == alarm_changes


async def test_unreadable_alarm_is_skipped(store: Store) -> None:
    await store.commit(alarms.save(store.keys, StoredAlarms(0, {}), [RAISED]))
    await store.execute("HSET", store.keys.alarms(), "b", "{")
    assert set((await alarms.load(store)).alarms) == {"a"}
