"""Defects of the plain asyncua for which we have parts of our own; docs/explanation/asyncua.md names each.

A test that fails here says that asyncua has changed: see whether our part can go.
"""

from types import SimpleNamespace

import pytest
from asyncua import ua
from asyncua.common.connection import TransportLimits
from asyncua.common.utils import Buffer
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData
from asyncua.server.internal_server import InternalServer
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.monitored_item_service import WhereClauseEvaluator
from asyncua.server.subscription_service import SubscriptionService
from asyncua.ua.ua_binary import struct_to_binary

from edge.opcua import client_transport


def subscription() -> InternalSubscription:
    return InternalSubscription(
        ua.CreateSubscriptionResult(RevisedPublishingInterval=1000), AddressSpace(), lambda _: None, ua.NodeId()
    )


def change(number: int) -> ua.MonitoredItemNotification:
    return ua.MonitoredItemNotification(number, ua.DataValue(ua.Variant(number)))


async def test_asyncua_keeps_the_first_publishing_interval() -> None:
    service = SubscriptionService(AddressSpace())
    asked = ua.CreateSubscriptionParameters(RequestedPublishingInterval=1000, PublishingEnabled=True)
    made = await service.create_subscription(asked, lambda _: None, ua.NodeId())
    try:
        wanted = ua.ModifySubscriptionParameters(made.SubscriptionId, RequestedPublishingInterval=50)
        assert service.modify_subscription(wanted).RevisedPublishingInterval == 1000
    finally:
        await service.delete_subscriptions([made.SubscriptionId])


async def test_asyncua_queue_discards_the_oldest_without_a_report() -> None:
    made = subscription()
    for number in range(3):
        await made.enqueue_datachange_event(1, change(number), 2)
    queue = made._triggered_datachanges[1]  # noqa: SLF001 - it is not public
    assert [(item.ClientHandle, item.Value.StatusCode.value) for item in queue] == [(1, 0), (2, 0)]


async def test_asyncua_answers_an_unknown_republish_with_an_empty_message() -> None:
    assert subscription().republish(77).NotificationData == []


async def test_asyncua_has_no_continuation_points() -> None:
    with pytest.raises(NotImplementedError):
        await InternalServer().isession.browse_next(ua.BrowseNextParameters())


async def test_asyncua_ignores_an_index_range() -> None:
    core = InternalServer()
    node = ua.NodeId("array", 1)
    core.aspace[node] = NodeData(node)
    value = ua.DataValue(ua.Variant([1, 2, 3]))
    core.aspace[node].attributes[ua.AttributeIds.Value] = AttributeValue(value)
    item = ua.ReadValueId(NodeId=node, AttributeId=ua.AttributeIds.Value, IndexRange="0")
    (read,) = await core.isession.read(ua.ReadParameters(NodesToRead=[item]))
    assert read.Value.Value == [1, 2, 3]


async def test_asyncua_finds_no_events_of_subtypes() -> None:
    kind = ua.LiteralOperand(ua.Variant(ua.NodeId(ua.ObjectIds.BaseEventType)))
    element = ua.ContentFilterElement(FilterOperator=ua.FilterOperator.OfType, FilterOperands=[kind])
    evaluator = WhereClauseEvaluator(None, AddressSpace(), ua.ContentFilter(Elements=[element]))
    assert not evaluator.eval(SimpleNamespace(EventType=ua.NodeId(ua.ObjectIds.SystemEventType)))


async def test_asyncua_moves_back_for_a_negative_length() -> None:
    data = Buffer(bytes(16))
    data.skip(8)
    client_transport._asyncua_read(data, -4)  # noqa: SLF001 - the function that we replace
    assert data.cur_pos == 4


async def test_asyncua_exchanges_bits_of_diagnostic_infos() -> None:
    locale, text = 0x08, 0x04  # OPC 10000-6, 5.2.2.12
    assert struct_to_binary(ua.DiagnosticInfo(LocalizedText=1))[0] == locale != text


async def test_asyncua_acknowledges_the_buffers_of_the_other_direction() -> None:
    hello = ua.Hello(ReceiveBufferSize=8192, SendBufferSize=65_535)
    acknowledge = TransportLimits().create_acknowledge_and_set_limits(hello)
    assert (acknowledge.ReceiveBufferSize, acknowledge.SendBufferSize) == (8192, 65_535)
