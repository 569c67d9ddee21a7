"""The nodes of a condition have the members of their types."""

import pytest

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.features.telemetry.rules.alarm import Raise
from edge.ports.alarm import Alarm
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, alarm_server, change, condition

pytestmark = pytest.mark.slow

LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500))
RULE: Rule = LimitRule(id="hot", tag="wrench.temp", limits=LIMITS)
CONFIRMED = Raise(500, {"en": "too hot"}, 81.5, confirm=True)


async def stored(store: Store, alarm: Alarm) -> Alarm:
    return (await alarms.load(store)).alarms[alarm.id]


async def test_nodes_of_a_condition_have_the_mandatory_members_and_good_values(store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        below = {name: rest for name, *rest in await client.ask("browse", node=condition(alarm))}
        bad = {name: rest for name, rest in below.items() if rest[0] not in {"Good", "Method", "Object"}}
        assert not bad
        for name in [
            "ConditionClassId",
            "ConditionClassName",
            "ConditionName",
            "BranchId",
            "Retain",
            "EnabledState/Id",
            "Quality/SourceTimestamp",
            "LastSeverity/SourceTimestamp",
            "Comment/SourceTimestamp",
            "ClientUserId",
            "AckedState/Id",
            "ActiveState/Id",
            "InputNode",
            "SuppressedOrShelved",
            "ShelvingState/CurrentState/Id",
            "ShelvingState/UnshelveTime",
            "LimitState/CurrentState/Id",
            "HighLimit",
            "HighHighLimit",
            "Acknowledge",
            "Confirm",
            "AddComment",
            "Enable",
            "Disable",
            "ShelvingState/TimedShelve",
        ]:
            assert name in below, name
        assert below["HighLimit"][2] == 80
        assert below["LatchedState/TransitionTime"][2], "it was null until the alarm was cleared"
        folder = {name for name, *_ in await client.ask("browse", node="ns=8;s=station-1")}
        assert "Alarms/hot: wrench.temp/AckedState/Id" in folder


async def test_condition_without_subscribers_keeps_no_nodes(store: Store, wait_until: WaitUntil) -> None:
    alarm = await change(store, "tag", HOT)
    async with alarm_server(store) as server, alarm_client(server.endpoint) as client:
        conditions = server.alarms.conditions
        await wait_until(lambda: len(conditions) == 1)
        await client.ask("browse", node=condition(alarm))
        assert not conditions._objects._conditions[alarm.id].watched  # noqa: SLF001 - the cost is the point
