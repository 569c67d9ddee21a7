"""A call about an alarm is executed once, however often it comes, and wrong ones are refused."""

import asyncio
from typing import Any

import pytest

from edge.features.telemetry.calls import call_alarm
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.features.telemetry.test_alarm_requests import raised


def call(data: Any, event_id: str = "1") -> CloudEvent:
    return CloudEvent(id=event_id, source="/mes", type="x", data=data)


async def test_same_call_again_has_the_same_answer_and_no_second_effect(store: Store) -> None:
    alarm = await raised(store, "t")
    event = call({"AlarmID": alarm.id, "By": "bo", "Comment": "seen"})
    answers = [await call_alarm(store, "Acknowledge", event, lambda: 9, 60_000) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0].state, answers[0].by) == ("acknowledged", "bo")
    assert [alarm_change.kind for alarm_change in await alarms.newest(store, 9)] == ["raised", "acknowledged"]


async def test_same_call_at_two_gateways_at_once_has_one_answer(store: Store) -> None:
    alarm = await raised(store, "t")
    event = call({"AlarmID": alarm.id, "By": "bo", "Comment": "seen"})
    answers = await asyncio.gather(*(call_alarm(store, "Acknowledge", event, lambda: 9, 60_000) for _ in range(3)))
    assert answers[0] == answers[1] == answers[2]
    assert [alarm_change.kind for alarm_change in await alarms.newest(store, 9)] == ["raised", "acknowledged"]


@pytest.mark.parametrize("data", [None, {}, {"AlarmID": "x"}, {"AlarmID": 5, "By": "bo"}, {"AlarmID": "x", "By": "bo"}])
async def test_wrong_payload_and_unknown_alarm_are_refused(store: Store, data: Any) -> None:
    with pytest.raises(Refused):
        await call_alarm(store, "Acknowledge", call(data), lambda: 9, 60_000)


@pytest.mark.parametrize("seconds", [1e17, 1e306, 366 * 86_400 + 1])
async def test_alarm_is_not_shelved_beyond_all_times(store: Store, seconds: float) -> None:
    """1e306 seconds ended the call with an OverflowError, 1e17 resulted in an instant beyond 64 bits."""
    alarm = await raised(store, "t")
    with pytest.raises(Refused):
        await call_alarm(
            store, "Shelve", call({"AlarmID": alarm.id, "By": "bo", "Seconds": seconds}), lambda: 9, 60_000
        )
