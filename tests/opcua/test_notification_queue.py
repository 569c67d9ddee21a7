"""A full queue of a monitored item reports its discarded values, checked by a client on another stack."""

from typing import Any

import pytest
from asyncua import ua

from edge.opcua.access import reading_in
from edge.opcua.answer_encoding import EncodedEvent, decode_event, encode_event
from edge.opcua.notification_queue import add_event, add_value, overflow_event
from edge.uaserver.server import UaServer
from tests.uaserver.other_stack import OtherStack, value_of

LEVEL = "i=2267"
OVERFLOW = 0x480
TYPE, NUMBER = ua.SimpleAttributeOperand(BrowsePath=[ua.QualifiedName("EventType")]), ua.SimpleAttributeOperand()
OVERFLOW_TYPE = ua.NodeId(ua.ObjectIds.EventQueueOverflowEventType)


def value(number: int) -> ua.MonitoredItemNotification:
    return ua.MonitoredItemNotification(1, ua.DataValue(ua.Variant(number, ua.VariantType.Int32)))


def event(number: int) -> EncodedEvent:
    return encode_event(1, [ua.Variant(), ua.Variant(number, ua.VariantType.Int32)])


@pytest.mark.parametrize(
    ("discards_oldest", "size", "expected"),
    [
        (True, 3, [(2, OVERFLOW), (3, 0), (4, 0)]),
        (False, 3, [(0, 0), (1, 0), (4, OVERFLOW)]),
        (True, 1, [(4, 0)]),
        (False, 1, [(4, 0)]),
        (True, 5, [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]),
    ],
)
def test_overflow_bit_marks_the_gap_in_the_values(
    discards_oldest: bool,  # noqa: FBT001 - a parameter of the table
    size: int,
    expected: list[tuple[int, int]],
) -> None:
    queue: list[ua.MonitoredItemNotification] = []
    full = [add_value(queue, value(number), size, discards_oldest=discards_oldest) for number in range(5)]
    assert [(item.Value.Value.Value, item.Value.StatusCode.value) for item in queue] == expected
    assert sum(full) == (2 if size == 3 else 0)


@pytest.mark.parametrize(("discards_oldest", "expected"), [(True, [None, 3, 4]), (False, [0, 1, None])])
def test_an_event_reports_that_events_were_discarded(
    discards_oldest: bool,  # noqa: FBT001 - a parameter of the table
    expected: list[int | None],
) -> None:
    queue: list[EncodedEvent] = []
    overflow = overflow_event(1, ua.EventFilter(SelectClauses=[TYPE, NUMBER]))
    full = [add_event(queue, event(number), 2, overflow, discards_oldest=discards_oldest) for number in range(5)]
    assert [decode_event(encoded_event).EventFields[1].Value for encoded_event in queue] == expected
    assert [
        decode_event(encoded_event).EventFields[0].Value for encoded_event in queue if encoded_event is overflow
    ] == [OVERFLOW_TYPE]
    assert sum(full) == 3


def test_overflow_is_stated_in_the_language_of_the_session() -> None:
    message = ua.SimpleAttributeOperand(BrowsePath=[ua.QualifiedName("Message")])
    with reading_in(("de",)):
        overflow = overflow_event(1, ua.EventFilter(SelectClauses=[message]))
    assert decode_event(overflow).EventFields[0].Value.Text.startswith("Ereignisse wurden verworfen")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("discard_oldest", "kept"), [(True, [3, 4, 5]), (False, [1, 2, 5])])
async def test_another_stack_receives_the_overflow_bit(
    observed: UaServer,
    other: OtherStack,
    discard_oldest: bool,  # noqa: FBT001 - a parameter of the table
    kept: list[int],
) -> None:
    """Five values within a publishing interval, for a queue of three."""
    made = await other.subscription(requestedPublishingInterval=600_000, publishingEnabled=False)
    parameters = {"queueSize": 3, "discardOldest": discard_oldest}
    await _write(observed, 1)
    await other.monitor(made, value_of(LEVEL) | {"parameters": parameters})
    for number in (2, 3, 4, 5):
        await _write(observed, number)
    await other.send("SetPublishingMode", publishingEnabled=True, subscriptionIds=[made])
    await other.send(
        "ModifySubscription",
        subscriptionId=made,
        requestedPublishingInterval=50,
        requestedLifetimeCount=100,
        requestedMaxKeepAliveCount=10,
        maxNotificationsPerPublish=0,
    )
    found = await other.changes(3)
    assert [entry["value"]["value"]["value"] for entry in found] == kept
    flagged = found[0 if discard_oldest else 2]
    assert [entry is flagged for entry in found] == ["Overflow" in entry["value"]["statusCode"] for entry in found]
    await other.send("DeleteSubscriptions", subscriptionIds=[made])


async def _write(server: UaServer, level: int) -> None:
    core: Any = server._core  # noqa: SLF001 - no interface of the server writes a value that a test can choose
    written = ua.DataValue(ua.Variant(level, ua.VariantType.Byte))
    await core.write_attribute_value(ua.NodeId(ua.ObjectIds.Server_ServiceLevel), written)
