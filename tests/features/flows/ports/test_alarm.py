"""An alarm of a flow is stored, waits for acknowledgement, and stays when the rules are loaded again."""

import pytest

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.act import RaiseAlarm
from edge.features.flows.ports.alarm import AlarmRaiser
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.rules.alarm import Acknowledge
from edge.ports.alarm import AlarmChangeKind, AlarmState
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.features.telemetry.plant import BEGIN, HOT, TelemetryClock, at_work, rules_of, until_drained
from tests.store.losing_store import LosingStore, Loss

LOW = RaiseAlarm("shift-report", "cmk-low", 600, "Cmk is {value}", 1.2)


def clock() -> int:
    return BEGIN


async def test_alarm_of_a_flow_waits_for_acknowledgement(store: Store) -> None:
    output = await AlarmRaiser(store, clock).raise_alarm(LOW, "t")
    (alarm,) = (await alarms.load(store)).alarms.values()
    assert output == {"alarm": alarm.id, "count": 1}
    assert (alarm.rule, alarm.subject, alarm.severity, alarm.value) == ("cmk-low", "shift-report", 600, 1.2)
    assert alarm.state is AlarmState.RETURNED_UNACKNOWLEDGED
    assert alarm.message == {"en": "Cmk is 1.2"}
    changes = await alarms.newest(store, 10)
    assert [change.kind for change in changes] == [AlarmChangeKind.RAISED, AlarmChangeKind.CLEARED]


async def test_alarm_raised_again_is_counted_and_needs_acknowledgement_again(store: Store) -> None:
    raiser = AlarmRaiser(store, clock)
    first = await raiser.raise_alarm(LOW, "t")
    assert (await raiser.raise_alarm(LOW, "t"))["count"] == 2
    await request_change(store, first["alarm"], Acknowledge("bo"), clock)
    assert (await alarms.load(store)).alarms == {}
    assert await raiser.raise_alarm(LOW, "t") == {"alarm": first["alarm"], "count": 1}


async def test_alarm_stays_while_rules_raise_others(store: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await AlarmRaiser(store, clock).raise_alarm(LOW, "t")
        await until_drained(store)
    async with at_work(store, rules_of(HOT), TelemetryClock()):
        await until_drained(store)
    assert [alarm.rule for alarm in (await alarms.load(store)).alarms.values()] == ["cmk-low"]


async def test_large_value_is_left_out_of_the_alarm(store: Store) -> None:
    await AlarmRaiser(store, clock).raise_alarm(RaiseAlarm("f", "a", 1, "", list(range(10_000))), "t")
    (alarm,) = (await alarms.load(store)).alarms.values()
    assert alarm.value is None


async def test_unconfirmed_alarm_has_an_unknown_outcome(store: Store) -> None:
    losing = LosingStore(store, [Loss.REPLY])
    with pytest.raises(OutcomeUnknownError, match="the reply is lost"):
        await AlarmRaiser(losing, clock).raise_alarm(LOW, "t")
