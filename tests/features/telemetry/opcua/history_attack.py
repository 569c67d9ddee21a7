"""An attacking client: HistoryRead and the methods of alarms with their most expensive arguments."""

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from asyncua import ua

from edge.opcua.limits import METHOD_CALLS
from edge.uaserver.condition_space import LONGEST_COMMENT
from edge.uaserver.namespaces import Namespace
from tests.features.telemetry.opcua.history_client import START
from tests.opcua.attack_client import attack

SERVER = ua.NodeId(ua.ObjectIds.Server)
BEGIN = datetime.fromtimestamp(START / 1000, UTC)
YEAR = timedelta(days=365)
NODES = 1000
TEXT = ua.VariantType.LocalizedText
TAG = ua.NodeId("Tags/wrench.temp", Namespace.ALARMS)


def history(details: Any, node: ua.NodeId = TAG, count: int = NODES) -> Any:
    request = ua.HistoryReadRequest()
    request.Parameters.HistoryReadDetails = details
    request.Parameters.TimestampsToReturn = ua.TimestampsToReturn.Both
    request.Parameters.ReleaseContinuationPoints = False
    request.Parameters.NodesToRead = [ua.HistoryReadValueId(node)] * count
    return request


def events(names: int, negations: int, *, is_backward: bool = False) -> Any:
    """Return a request for all events with so many select clauses, and a chain of negations as where clause."""
    field = ua.SimpleAttributeOperand(
        ua.NodeId(ua.ObjectIds.BaseEventType), [ua.QualifiedName("Message")], ua.AttributeIds.Value
    )
    last = ua.ContentFilterElement(ua.FilterOperator.IsNull, [field])
    chain = [ua.ContentFilterElement(ua.FilterOperator.Not, [ua.ElementOperand(at + 1)]) for at in range(negations)]
    details = ua.ReadEventDetails()
    bounds = BEGIN - YEAR, datetime.now(UTC) + YEAR
    details.StartTime, details.EndTime = reversed(bounds) if is_backward else bounds
    details.Filter = ua.EventFilter([field] * names, ua.ContentFilter([*chain, last] if negations else []))
    return history(details, SERVER)


def methods(object_id: ua.NodeId, method: int, *arguments: ua.Variant) -> Any:
    request = ua.CallRequest()
    request.Parameters.MethodsToCall = [ua.CallMethodRequest(object_id, ua.NodeId(method), [*arguments])] * METHOD_CALLS
    return request


def requests(condition: str, event_id: bytes, subscription: int) -> Iterator[tuple[str, Any]]:
    """Yield every request with its name."""
    ids, alarm = ua.ObjectIds, ua.NodeId(condition, Namespace.ALARMS)
    shelving = ua.NodeId(f"{condition}/ShelvingState", Namespace.ALARMS)
    event = ua.Variant(event_id, ua.VariantType.ByteString)
    comment = ua.Variant(ua.LocalizedText("x" * LONGEST_COMMENT), TEXT)
    raw = ua.ReadRawModifiedDetails(False, BEGIN - YEAR, BEGIN + YEAR, 0, True)
    yield "raw of a year", history(raw)
    yield "raw of a year backwards", history(ua.ReadRawModifiedDetails(False, BEGIN + YEAR, BEGIN - YEAR, 0, True))
    configuration = ua.AggregateConfiguration()
    for name, interval in (("year", YEAR.total_seconds() * 1000), ("millisecond", 1.0)):
        kinds = [ua.NodeId(ids.AggregateFunction_TimeAverage)] * NODES
        processed = ua.ReadProcessedDetails(BEGIN - YEAR, BEGIN + YEAR, interval, kinds, configuration)
        yield f"processed by the {name}", history(processed)
    times = [BEGIN + timedelta(seconds=25 * number) for number in range(1000)]
    yield "at a thousand instants", history(ua.ReadAtTimeDetails(times, True))
    yield "all events", events(1, 0)
    yield "all fields of all events", events(100, 0, is_backward=True)
    yield "no event by a long filter", events(1, 63)
    gone = history(raw)
    gone.Parameters.ReleaseContinuationPoints = True
    yield "release", gone
    yield "acknowledge", methods(alarm, ids.AcknowledgeableConditionType_Acknowledge, event, comment)
    yield "confirm", methods(alarm, ids.AcknowledgeableConditionType_Confirm, event, comment)
    yield "comment", methods(alarm, ids.ConditionType_AddComment, event, comment)
    unknown = ua.Variant(bytes(8_000), ua.VariantType.ByteString)
    yield "acknowledge unknown", methods(alarm, ids.AcknowledgeableConditionType_Acknowledge, unknown, comment)
    length = ua.Variant(1000.0, ua.VariantType.Double)
    yield "shelve", methods(shelving, ids.ShelvedStateMachineType_TimedShelve2, length, comment)
    yield "unshelve", methods(shelving, ids.ShelvedStateMachineType_Unshelve2, comment)
    yield "one shot", methods(shelving, ids.ShelvedStateMachineType_OneShotShelve)
    yield "disable", methods(alarm, ids.ConditionType_Disable)
    yield "enable", methods(alarm, ids.ConditionType_Enable)
    number = ua.Variant(subscription, ua.VariantType.UInt32)
    of_type = ua.NodeId(ids.ConditionType)
    yield "refresh", methods(of_type, ids.ConditionType_ConditionRefresh, number)
    yield "refresh of an item", methods(of_type, ids.ConditionType_ConditionRefresh2, number, number)


if __name__ == "__main__":
    asyncio.run(attack(sys.argv[1], 1, partial(requests, sys.argv[2], bytes.fromhex(sys.argv[3]))))
