"""A client on another stack (node-opcua) reads events of alarms from the past."""

from edge.features.telemetry.rules.alarm import Acknowledge
from edge.store.client import Store
from tests.features.telemetry.opcua.alarm_plant import HOT, change, condition
from tests.features.telemetry.opcua.history_client import HistoryClient, instant
from tests.uaserver.other_stack import node


async def test_events_of_alarms_are_read_from_the_past(history: HistoryClient, store: Store) -> None:
    alarm = await change(store, "wrench.temp", HOT, Acknowledge("bo", "seen"))
    operand = {"$": "SimpleAttributeOperand", "typeDefinitionId": node("i=2041"), "attributeId": 13}
    clauses = [operand | {"browsePath": [{"$": "QualifiedName", "name": name}]} for name in ("Message", "ClientUserId")]
    clauses.append({"$": "SimpleAttributeOperand", "typeDefinitionId": node("i=2782"), "attributeId": 1})
    details = {
        "numValuesPerNode": 0,
        "startTime": instant(alarm.changed_at - 60_000),
        "endTime": instant(alarm.changed_at + 60_000),
        "filter": {"$": "EventFilter", "selectClauses": clauses},
    }
    result = await history.read("ReadEventDetails", details, "i=2253")
    events = [[field["value"] for field in event["eventFields"]] for event in result["historyData"]["events"]]
    assert [(message["text"], by, shown) for message, by, shown in events] == [
        ("too hot", "", condition(alarm)),
        ("too hot", "bo", condition(alarm)),
    ]
