"""A client on another stack (node-opcua) sees alarms as conditions; its changes also apply to the MES and the CLI."""

import pytest

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.features.telemetry.rules.alarm import Acknowledge, ChangeSeverity, Clear, Raise
from edge.ports.alarm import AckState, Alarm
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, alarm_server, change, condition

pytestmark = pytest.mark.slow

LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500))
RULE: Rule = LimitRule(id="hot", tag="wrench.temp", limits=LIMITS)
CONFIRMED = Raise(500, {"en": "too hot"}, 81.5, confirm=True)


async def stored(store: Store, alarm: Alarm) -> Alarm:
    return (await alarms.load(store)).alarms[alarm.id]


async def test_alarm_list_of_node_opcua_shows_and_answers_alarms(store: Store) -> None:
    alarm = await change(store, "wrench.temp", CONFIRMED)
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("install")
        (shown,) = await client.list_until(len)
        assert shown["ConditionId"] == condition(alarm)
        assert (shown["SourceName"], shown["ConditionName"]) == ("station-1", "hot: wrench.temp")
        assert (shown["EventType"], shown["Severity"], shown["Message"]) == ("ns=0;i=9341", 500, "too hot")
        assert (shown["Retain"], shown["ActiveState.Id"], shown["AckedState.Id"]) == (True, True, False)
        assert await client.ask("acknowledge", condition=condition(alarm), comment="on my way") == "Good"
        acknowledged = await stored(store, alarm)
        assert (acknowledged.acknowledgement, acknowledged.comment) == (AckState.ACKNOWLEDGED, "on my way")
        assert acknowledged.by == "anonymous"
        await client.list_until(lambda found: found[0]["AckedState.Id"] and not found[0]["ConfirmedState.Id"])

        assert await client.ask("confirm", condition=condition(alarm), comment="fan replaced") == "Good"
        assert (await stored(store, alarm)).acknowledgement is AckState.CONFIRMED
        assert await client.ask("comment", condition=condition(alarm), comment="order 12") == "Good"
        (last,) = await client.list_until(lambda found: found[0]["Comment"] == "order 12")
        assert (last["ConfirmedState.Id"], last["Retain"], last["ClientUserId"]) == (True, True, "anonymous")

        await change(store, "wrench.temp", Clear())
        (gone,) = await client.list_until(lambda found: not found[0]["Retain"])
        assert gone["ActiveState.Id"] is False


async def test_answers_of_the_mes_and_the_cli_reach_the_client(store: Store) -> None:
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        assert (await client.ask("monitor"))["status"] == "Good"
        await change(store, "wrench.temp", HOT)
        await client.event(AckedState__Id=False, Severity=500, LastSeverity=0)
        await change(store, "wrench.temp", ChangeSeverity(800, {"en": "hotter"}, 96.0))
        escalated = await client.event(Severity=800, LastSeverity=500)
        assert escalated["LimitState.CurrentState"] == "HighHigh"
        await change(store, "wrench.temp", Acknowledge("bo", "seen"))
        assert (await client.event(AckedState__Id=True))["ClientUserId"] == "bo"
