"""Events reach each monitored item whose filter passes them."""

import pytest

from edge.model.alarm import Alarm
from edge.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.rules.alarm import Raise
from edge.store import alarms
from edge.store.client import Store
from tests.uaserver.alarm_plant import HOT, alarm_client, alarm_server, change

pytestmark = pytest.mark.slow

LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500))
RULE: Rule = LimitRule(id="hot", tag="wrench.temp", limits=LIMITS)
CONFIRMED = Raise(500, {"en": "too hot"}, 81.5, confirm=True)


async def stored(store: Store, alarm: Alarm) -> Alarm:
    return (await alarms.load(store)).alarms[alarm.id]


async def test_where_clause_by_type_includes_subtypes(store: Store) -> None:
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        for where in ("ConditionType", "AlarmConditionType", "ExclusiveLimitAlarmType", "OffNormalAlarmType"):
            assert (await client.ask("monitor", where=where, fields=["Message"]))["status"] == "Good"
        await change(store, "wrench.temp", HOT)
        for _ in range(3):
            await client.event(Message="too hot")
        await change(store, "wrench.temp", Raise(800, {"en": "last"}))
        for _ in range(3):
            # The fourth subscription, to another type, has received nothing before these.
            assert await client.event() == {"Message": "last"}
