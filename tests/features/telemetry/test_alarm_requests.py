"""Alarm requests are applied, refused with a reason, and not lost by concurrent writers."""

import asyncio

import pytest

from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.features.telemetry.rules.alarm import Acknowledge, AddComment, AlarmChanged, Raise, Shelve, transition
from edge.foundation.errors import Refused
from edge.ports.alarm import ALARM_METHODS, Alarm, AlarmCall, AlarmChangeKind, alarm_id
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.store.commit import operation
from edge.store.kept_alarms import AlarmChange


async def raised(store: Store, subject: str) -> Alarm:
    alarm = Alarm(id=alarm_id("hot", subject), rule="hot", subject=subject)
    result = transition(alarm, Raise(500, {"en": "hot"}), 1)
    assert isinstance(result, AlarmChanged)
    before = await alarms.load(store)
    await store.commit(alarms.save(store.keys, before, [AlarmChange(result.alarm, AlarmChangeKind.RAISED)]))
    return result.alarm


async def test_request_is_committed_with_its_additional_operations(store: Store) -> None:
    alarm = await raised(store, "t")
    also = operation("SET", store.keys.cededupe("x"), "done")

    alarm_notice = await request_change(store, alarm.id, Acknowledge("bo", "seen"), lambda: 9, lambda _: also)
    assert (alarm_notice.by, alarm_notice.comment, alarm_notice.changed_at) == ("bo", "seen", 9)
    assert await store.execute("GET", store.keys.cededupe("x")) == "done"
    assert [alarm_change.kind for alarm_change in await alarms.newest(store, 9)] == ["raised", "acknowledged"]


async def test_requests_of_several_people_are_all_applied(store: Store) -> None:
    alarm = await raised(store, "t")
    people = [f"p{number}" for number in range(8)]
    await asyncio.gather(*(request_change(store, alarm.id, AddComment(person, "x"), lambda: 9) for person in people))
    assert sorted(alarm_change.alarm.by for alarm_change in await alarms.newest(store, 8)) == people


async def test_unknown_alarm_and_wrong_state_are_refused(store: Store) -> None:
    with pytest.raises(Refused, match="no alarm"):
        await request_change(store, "x", Acknowledge("bo"), lambda: 9)
    alarm = await raised(store, "t")
    await request_change(store, alarm.id, Acknowledge("bo"), lambda: 9)
    with pytest.raises(Refused, match="acknowledged already"):
        await request_change(store, alarm.id, Acknowledge("bo"), lambda: 9)


def test_every_alarm_method_has_its_event() -> None:
    arguments = AlarmCall(alarm_id="x", by="bo", seconds=2)
    assert len({type(alarm_event_of(method, arguments, 1000)) for method in ALARM_METHODS}) == len(ALARM_METHODS)
    assert alarm_event_of("Shelve", arguments, 1000) == Shelve("bo", until=3000)
