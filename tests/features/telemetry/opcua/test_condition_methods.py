"""Methods of conditions do what the MES and the command line do, and refuse with the statuses of OPC 10000-9."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Rule
from edge.features.telemetry.rules.alarm import ChangeSeverity, Clear, Raise
from edge.model.user import Role
from edge.ports.alarm import AckState, Alarm, AlarmState
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_client, alarm_server, change, condition

pytestmark = pytest.mark.slow

LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500))
RULE: Rule = LimitRule(id="hot", tag="wrench.temp", limits=LIMITS)
CONFIRMED = Raise(500, {"en": "too hot"}, 81.5, confirm=True)


async def stored(store: Store, alarm: Alarm) -> Alarm:
    return (await alarms.load(store)).alarms[alarm.id]


async def test_opc_ua_shelving_equals_mes_shelving(store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    shelving = condition(alarm, "ShelvingState")
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor")
        assert await client.ask("call", object=shelving, method="Unshelve") == "BadConditionNotShelved"
        for length in (0, -5, float("1e300"), 367 * 86_400_000):
            status = await client.ask("call", object=shelving, method="TimedShelve", inputs=[["Double", length]])
            assert status == "BadShelvingTimeOutOfRange", length
        assert await client.ask("call", object=shelving, method="TimedShelve", inputs=[["Double", 60_000]]) == "Good"
        shown = await client.event(SuppressedOrShelved=True)
        assert shown["ShelvingState.CurrentState"] == "Timed Shelved"
        assert (await stored(store, alarm)).state is AlarmState.SHELVED
        assert await client.ask("call", object=shelving, method="OneShotShelve") == "Good"
        assert await client.ask("call", object=shelving, method="OneShotShelve") == "BadConditionAlreadyShelved"
        inputs = [["LocalizedText", "spare part is there"]]
        assert await client.ask("call", object=shelving, method="i=24758", inputs=inputs) == "Good"
        assert (await stored(store, alarm)).comment == "spare part is there"
        # A client that does not know the node of the state machine calls with the ConditionId (OPC 10000-9, 5.8.17).
        assert await client.ask("call", object=condition(alarm), method="i=2948") == "Good"


async def test_disabled_condition_sends_no_events_until_it_is_enabled(store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor")
        assert await client.ask("call", object=condition(alarm), method="Enable") == "BadConditionAlreadyEnabled"
        assert await client.ask("call", object=condition(alarm), method="Disable") == "Good"
        disabled = await client.event(EnabledState__Id=False)
        assert disabled["Retain"] is False
        assert (await stored(store, alarm)).state is AlarmState.OUT_OF_SERVICE
        assert await client.ask("call", object=condition(alarm), method="Disable") == "BadConditionAlreadyDisabled"
        inputs = [["ByteString", disabled["EventId"]], ["LocalizedText", "x"]]
        assert await client.ask("call", object=condition(alarm), method="Acknowledge", inputs=inputs) == (
            "BadConditionDisabled"
        )
        await change(store, "wrench.temp", ChangeSeverity(800, {"en": "hotter"}))
        assert await client.ask("call", object=condition(alarm), method="Enable") == "Good"
        enabled = await client.event()
        assert (enabled["EnabledState.Id"], enabled["Severity"], enabled["Retain"]) == (True, 800, True)


async def test_each_unanswered_raise_is_a_branch_with_its_own_acknowledgement(store: Store) -> None:
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor")
        alarm = await change(store, "wrench.temp", HOT, Clear(), Raise(800, {"en": "hotter"}, 96.0))
        branch = await client.event(ActiveState__Id=False, Retain=True, Severity=500, Message="too hot")
        while branch["BranchId"] == "ns=0;i=0":
            branch = await client.event(Retain=True)
        assert (branch["ConditionId"], branch["AckedState.Id"]) == (condition(alarm), False)
        current = await client.event(BranchId="ns=0;i=0", Severity=800)

        async def acknowledge(event: dict[str, Any]) -> Any:
            inputs = [["ByteString", event["EventId"]], ["LocalizedText", "seen"]]
            return await client.ask("call", object=condition(alarm), method="Acknowledge", inputs=inputs)

        assert await acknowledge(branch) == "Good"
        answered = await client.event(BranchId=branch["BranchId"])
        assert (answered["AckedState.Id"], answered["Retain"]) == (True, False)
        left = await stored(store, alarm)
        assert (left.earlier, left.acknowledgement) == ((), AckState.UNACKNOWLEDGED)
        assert await acknowledge(branch) == "BadEventIdUnknown"
        assert await acknowledge(current) == "Good"
        assert await acknowledge(current) == "BadConditionBranchAlreadyAcked"


async def test_event_from_before_an_escalation_does_not_acknowledge_it(store: Store) -> None:
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        await client.ask("monitor")
        alarm = await change(store, "wrench.temp", HOT)
        seen = await client.event(Severity=500)
        await change(store, "wrench.temp", ChangeSeverity(800, {"en": "hotter"}, 96.0))
        await client.event(Severity=800)
        inputs = [["ByteString", seen["EventId"]], ["LocalizedText", "x"]]
        status = await client.ask("call", object=condition(alarm), method="Acknowledge", inputs=inputs)
        assert (status, (await stored(store, alarm)).acknowledgement) == (
            "BadEventIdUnknown",
            AckState.UNACKNOWLEDGED,
        )


INVALID_CALLS: tuple[tuple[str, list[list[Any]], str], ...] = (
    ("Acknowledge", [], "BadArgumentsMissing"),
    ("Acknowledge", [["ByteString", "00"], ["LocalizedText", "x"], ["Double", 1]], "BadTooManyArguments"),
    ("Acknowledge", [["String", "x"], ["LocalizedText", "x"]], "BadInvalidArgument"),
    ("Acknowledge", [["ByteString", "00"], ["LocalizedText", "x"]], "BadEventIdUnknown"),
    ("Acknowledge", [["ByteString", "00" * 28], ["LocalizedText", "x"]], "BadEventIdUnknown"),
    ("Acknowledge", [["ByteString", "ff" * 28], ["LocalizedText", "x" * 1001]], "BadInvalidArgument"),
    ("i=2993", [], "BadMethodInvalid"),
    ("i=18199", [], "BadInvalidState"),
    ("i=3875", [["UInt32", 12]], "BadSubscriptionIdInvalid"),
)


async def test_invalid_call_is_refused_with_the_status_of_the_standard(store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    async with alarm_server(store, [RULE]) as server, alarm_client(server.endpoint) as client:
        for method, inputs, expected in INVALID_CALLS:
            status = await client.ask("call", object=condition(alarm), method=method, inputs=inputs)
            assert status == expected, (method, inputs)
        assert await client.ask("call", object=condition(alarm) + "x", method="i=9028") == "BadNodeIdUnknown"
        # OPC 10000-9, 5.5.5: the type of a condition is not a condition.
        assert await client.ask("call", object="i=2782", method="i=9028") == "BadNodeIdInvalid"
        assert await stored(store, alarm) == alarm


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        (Role.OBSERVER, ("BadUserAccessDenied", "BadUserAccessDenied")),
        (Role.OPERATOR, ("Good", "BadUserAccessDenied")),
    ],
)
async def test_role_decides_what_a_client_may_do(store: Store, role: Role, statuses: tuple[str, str]) -> None:
    alarm = await change(store, "wrench.temp", HOT)
    async with alarm_server(store, [RULE], role) as server, alarm_client(server.endpoint) as client:
        shelving = condition(alarm, "ShelvingState")
        assert await client.ask("call", object=shelving, method="OneShotShelve") == statuses[0]
        assert await client.ask("call", object=condition(alarm), method="Disable") == statuses[1]
