"""An event is sent to each monitored item whose filter it matches."""

from typing import cast

import pytest
from asyncua import ua

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.features.telemetry.rules.alarm import Raise
from edge.opcua.event_filter import EventRecord
from edge.opcua.monitored_items import MonitoredItem, MonitoredItems
from edge.ports.alarm import Alarm
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.uaserver.events import send_event
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, alarm_server, change

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


async def test_failing_filter_drops_the_event_for_its_item_only() -> None:
    class Fields(dict[str, ua.Variant]):
        def get(self, key: str, _default: object = None) -> ua.Variant:
            raise ValueError(key)

    class Items:
        def __init__(self) -> None:
            self.notified: list[int] = []

        async def notify(self, item: MonitoredItem, _notification: object) -> None:
            self.notified.append(item.monitored_item_id)

    items = Items()
    clause = ua.SimpleAttributeOperand(BrowsePath=[ua.QualifiedName("Message")], AttributeId=ua.AttributeIds.Value)
    for number, clauses in enumerate(([clause], [])):
        item = MonitoredItem(
            monitored_item_id=number,
            client_handle=number,
            read_value_id=ua.ReadValueId(AttributeId=ua.AttributeIds.EventNotifier),
            mode=ua.MonitoringMode.Reporting,
            filter=ua.EventFilter(SelectClauses=clauses),
            queue_size=1,
            timestamps=ua.TimestampsToReturn.Both,
            discards_oldest=True,
        )
        await send_event(cast("MonitoredItems", items), item, EventRecord((), Fields()))
    assert items.notified == [1]
