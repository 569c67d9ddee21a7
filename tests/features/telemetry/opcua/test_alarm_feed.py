"""The conditions follow the alarms of the store."""

import pytest
from asyncua import ua

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.features.telemetry.rules.alarm import Raise
from edge.ports.alarm import Alarm
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from edge.uaserver.namespaces import Namespace
from tests.conftest import WaitUntil
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, alarm_server, change, condition
from tests.uaserver.running import MACHINES

pytestmark = pytest.mark.slow

LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500))
RULE: Rule = LimitRule(id="hot", tag="wrench.temp", limits=LIMITS)
CONFIRMED = Raise(500, {"en": "too hot"}, 81.5, confirm=True)


async def stored(store: Store, alarm: Alarm) -> Alarm:
    return (await alarms.load(store)).alarms[alarm.id]


async def test_condition_id_is_the_same_on_every_gateway_of_a_store(store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    seen = []
    for _ in range(2):
        async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
            await client.ask("install")
            (shown,) = await client.list_until(len)
            seen.append((shown["ConditionId"], shown["EventId"]))
    assert seen == [seen[0]] * 2
    assert seen[0][0] == condition(alarm)


async def test_alarm_of_the_gateway_itself_is_below_its_object(store: Store) -> None:
    async with alarm_server(store) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor", node="ns=1;s=Gateway")
        await change(store, "wrench.temp", HOT)
        await change(store, "gateway.store_fullness", HOT, rule="gateway.store_nearly_full")
        assert (await client.event())["SourceName"] == "Gateway"


async def test_first_alarm_of_a_tag_names_its_variable(store: Store) -> None:
    """An alarm of the first samples of a tag, which are saved seconds later, had no InputNode, and never got one."""
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor")
        await change(store, "wrench.temp", HOT)
        raised = await client.event(ConditionName="hot: wrench.temp")
        assert raised["InputNode"] == f"ns={int(Namespace.ALARMS)};s=Tags/wrench.temp"
        parents = ua.NodeId("Tags", Namespace.ALARMS)
        shown = server.alarms.tags.node(parents).references
        assert [value.BrowseName.Name for value in shown if value.IsForward and value.BrowseName.Name == "wrench.temp"]
        server.alarms.tags.show({})
        assert server.alarms.tags.has("wrench.temp")


async def test_scope_of_the_job_decides_the_machine(store: Store, wait_until: WaitUntil) -> None:
    await change(store, "no-job", HOT)
    async with alarm_server(store, machines=MACHINES) as server:
        conditions = server.alarms.conditions
        await wait_until(lambda: len(conditions) == 1)
        view = conditions.view_of(conditions.ids()[0])
        assert view
        assert view.place.source_name == "Gateway"


async def test_replaced_store_sends_refresh_required_to_clients(store: Store, wait_until: WaitUntil) -> None:
    await change(store, "before", HOT)
    async with alarm_server(store) as server, alarm_client(server.endpoint) as client:
        conditions = server.alarms.conditions
        await wait_until(lambda: len(conditions) == 1)
        await client.ask("monitor")
        await store.execute("DEL", store.keys.alarms(), store.keys.alarm_changes())
        await store.execute("XADD", store.keys.alarm_changes(), "1-1", "kind", "raised", "alarm", "{}")
        # Only this test uses the server: the feed loses its connection and starts again.
        await store.execute("CLIENT", "KILL", "TYPE", "normal")
        assert (await client.event())["EventType"] == "ns=0;i=2789"
        assert not len(conditions)
