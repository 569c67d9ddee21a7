"""An item that cannot be monitored is refused with its own status; the others are monitored."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asyncua import Client, ua

from edge.uaserver.server import UaServer
from tests.opcua.test_server_session import asked
from tests.uaserver.running import Space

pytestmark = pytest.mark.asyncio(loop_scope="module")

A, O, C = ua.AttributeIds, ua.FilterOperator, ua.StatusCodes  # noqa: E741 - short names for the tables below

SERVER = ua.NodeId(ua.ObjectIds.Server)
LEVEL = ua.NodeId(ua.ObjectIds.Server_ServiceLevel)
TYPES = ua.NodeId(ua.ObjectIds.TypesFolder)
UNKNOWN = ua.NodeId("nowhere", 8)
MESSAGE = ua.SimpleAttributeOperand(
    TypeDefinitionId=ua.NodeId(ua.ObjectIds.BaseEventType),
    BrowsePath=[ua.QualifiedName("Message")],
    AttributeId=ua.AttributeIds.Value,
)
ONE = ua.LiteralOperand(ua.Variant(1))
NONE, ABSOLUTE, PERCENT = (ua.DataChangeFilter(DeadbandType=kind, DeadbandValue=1.0) for kind in ua.DeadbandType)


def where(operator: ua.FilterOperator, *operands: ua.FilterOperand) -> ua.EventFilter:
    element = ua.ContentFilterElement(FilterOperator=operator, FilterOperands=list(operands))
    return ua.EventFilter(SelectClauses=[MESSAGE], WhereClause=ua.ContentFilter(Elements=[element]))


EVENTS = ua.EventFilter(SelectClauses=[MESSAGE])


def item(node_id: ua.NodeId, attribute: ua.AttributeIds, wanted: object = None) -> ua.MonitoredItemCreateRequest:
    return ua.MonitoredItemCreateRequest(
        ItemToMonitor=ua.ReadValueId(NodeId=node_id, AttributeId=attribute),
        MonitoringMode=ua.MonitoringMode.Reporting,
        RequestedParameters=ua.MonitoringParameters(ClientHandle=1, QueueSize=1, Filter=wanted),
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def subscription(server: UaServer, client: Client) -> AsyncIterator[int]:
    del server
    made = await client.uaclient.create_subscription(asked(), lambda _: None)
    yield made.SubscriptionId
    await client.uaclient.delete_subscriptions([made.SubscriptionId])


async def created(
    client: Client, subscription: int, *items: ua.MonitoredItemCreateRequest
) -> list[ua.MonitoredItemCreateResult]:
    wanted = ua.CreateMonitoredItemsParameters(SubscriptionId=subscription, ItemsToCreate=list(items))
    results: list[ua.MonitoredItemCreateResult] = await client.uaclient.create_monitored_items(wanted)
    return results


WRONG = [
    (SERVER, A.EventNotifier, None, C.BadMonitoredItemFilterInvalid),
    (SERVER, A.EventNotifier, NONE, C.BadFilterNotAllowed),
    (SERVER, A.EventNotifier, ua.EventFilter(), C.BadEventFilterInvalid),
    (LEVEL, A.EventNotifier, EVENTS, C.BadAttributeIdInvalid),
    (UNKNOWN, A.EventNotifier, EVENTS, C.BadNodeIdUnknown),
    (TYPES, A.EventNotifier, EVENTS, C.BadNotSupported),
    (LEVEL, A.Value, EVENTS, C.BadFilterNotAllowed),
    (LEVEL, A.Value, ua.AggregateFilter(), C.BadMonitoredItemFilterUnsupported),
    (LEVEL, A.Value, PERCENT, C.BadFilterNotAllowed),
    (LEVEL, A.BrowseName, ABSOLUTE, C.BadFilterNotAllowed),
    (UNKNOWN, A.Value, None, C.BadNodeIdUnknown),
]


@pytest.mark.parametrize(("node_id", "attribute", "wanted", "code"), WRONG)
async def test_invalid_item_is_refused_and_the_next_one_is_created(
    client: Client, subscription: int, node_id: ua.NodeId, attribute: ua.AttributeIds, wanted: object, code: int
) -> None:
    sound = item(LEVEL, A.Value)
    refused, made = await created(client, subscription, item(node_id, attribute, wanted), sound)
    assert (refused.StatusCode, made.StatusCode) == (ua.StatusCode(code), ua.StatusCode())


@pytest.mark.parametrize(("requested", "revised"), [(0, 1), (3, 3), (10_000, 10)])
async def test_value_queue_is_bounded(client: Client, subscription: int, requested: int, revised: int) -> None:
    wanted = item(LEVEL, A.Value)
    wanted.RequestedParameters.QueueSize = requested
    (made,) = await created(client, subscription, wanted)
    assert made.RevisedQueueSize == revised


async def test_deadband_is_allowed_for_numbers_only(client: Client, subscription: int, space: Space) -> None:
    array = (await space.job_order_list()).nodeid
    first, second = await created(client, subscription, item(array, A.Value, ABSOLUTE), item(LEVEL, A.Value, ABSOLUTE))
    assert (first.StatusCode.value, second.StatusCode.value) == (C.BadFilterNotAllowed, C.Good)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (where(O.RelatedTo, ONE, ONE), C.BadFilterOperatorUnsupported),
        (where(O.Cast, ONE, ONE), C.BadFilterOperatorUnsupported),
        (where(O.InView, ONE), C.BadFilterOperatorUnsupported),
        (where(O.BitwiseAnd, ONE, ONE), C.BadFilterOperatorUnsupported),
        (where(O.Equals), C.BadFilterOperandCountMismatch),
        (where(O.Between, ONE, ONE), C.BadFilterOperandCountMismatch),
        (where(O.OfType, ONE, ONE), C.BadFilterOperandCountMismatch),
        (where(O.InList, ONE), C.BadFilterOperandCountMismatch),
    ],
)
async def test_unsupported_filter_operator_is_reported(
    client: Client, subscription: int, wanted: ua.EventFilter, code: int
) -> None:
    (refused,) = await created(client, subscription, item(SERVER, A.EventNotifier, wanted))
    assert refused.StatusCode.value == C.BadEventFilterInvalid
    (element,) = refused.FilterResult.WhereClauseResult.ElementResults
    assert element.StatusCode.value == code


async def test_self_referring_filter_is_refused_and_the_next_item_is_created(client: Client, subscription: int) -> None:
    wanted = where(O.Not, ua.ElementOperand(Index=0))
    refused, made = await created(
        client, subscription, item(SERVER, A.EventNotifier, wanted), item(SERVER, A.EventNotifier, EVENTS)
    )
    assert (refused.StatusCode.value, made.StatusCode.value) == (C.BadEventFilterInvalid, C.Good)
    (element,) = refused.FilterResult.WhereClauseResult.ElementResults
    assert [code.value for code in element.OperandStatusCodes] == [C.BadFilterElementInvalid]


async def test_modified_item_is_validated_like_a_new_one(client: Client, subscription: int) -> None:
    made = await created(client, subscription, item(LEVEL, A.Value), item(SERVER, A.EventNotifier, EVENTS))
    value, events = (element.MonitoredItemId for element in made)
    changes = [
        (value, ABSOLUTE, C.Good),
        (value, PERCENT, C.BadFilterNotAllowed),
        (events, where(O.Not, ONE), C.Good),
        (events, where(O.RelatedTo, ONE, ONE), C.BadEventFilterInvalid),
        (events, None, C.BadMonitoredItemFilterInvalid),
        (999_999, None, C.BadMonitoredItemIdInvalid),
    ]
    results = await client.uaclient.modify_monitored_items(
        ua.ModifyMonitoredItemsParameters(
            SubscriptionId=subscription,
            ItemsToModify=[
                ua.MonitoredItemModifyRequest(change, ua.MonitoringParameters(Filter=wanted, QueueSize=1))
                for change, wanted, _ in changes
            ],
        )
    )
    assert [result.StatusCode.value for result in results] == [code for *_, code in changes]
