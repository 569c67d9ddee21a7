"""The subscriptions of a session belong to it alone, and its requests are bounded (S6, S7, S8, W14)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.server.internal_server import InternalServer

from edge.opcua import limits
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.clients import Application, channel, connected, serves
from tests.uaserver.running import Space

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATE = ua.NodeId(ua.ObjectIds.Server_ServerStatus_State)
CLOCK = ua.NodeId(ua.ObjectIds.Server_ServerStatus_CurrentTime)
NOT_YOURS = ua.StatusCode(ua.StatusCodes.BadSubscriptionIdInvalid)


class Listener:
    """A subscription handler that collects the received values."""

    def __init__(self) -> None:
        self.heard = asyncio.Queue[object]()

    def datachange_notification(self, _node: object, value: object, _data: object) -> None:
        self.heard.put_nowait(value)


def asked(interval: float = 100, lifetime: int = 100) -> ua.CreateSubscriptionParameters:
    return ua.CreateSubscriptionParameters(
        RequestedPublishingInterval=interval,
        RequestedLifetimeCount=lifetime,
        RequestedMaxKeepAliveCount=10,
        PublishingEnabled=True,
    )


def item(node_id: ua.NodeId = STATE, queue: int = 1) -> ua.MonitoredItemCreateRequest:
    return ua.MonitoredItemCreateRequest(
        ItemToMonitor=ua.ReadValueId(NodeId=node_id, AttributeId=ua.AttributeIds.Value),
        MonitoringMode=ua.MonitoringMode.Reporting,
        RequestedParameters=ua.MonitoringParameters(ClientHandle=1, QueueSize=queue),
    )


@pytest_asyncio.fixture(loop_scope="module")
async def own(server: UaServer) -> AsyncIterator[Client]:
    """A separate client; its subscriptions end with its session."""
    async with patient_client(server.endpoint) as client:
        yield client


class TestOwnership:
    @pytest_asyncio.fixture(loop_scope="module")
    async def subscription(self, client: Client) -> AsyncIterator[int]:
        """A subscription of another client, notified every second."""
        listener = Listener()
        made = await client.create_subscription(50, listener)
        await made.subscribe_data_change(client.get_node(CLOCK))
        yield made.subscription_id
        while not listener.heard.empty():
            listener.heard.get_nowait()
        async with asyncio.timeout(60):
            await listener.heard.get()
        await made.delete()

    async def test_subscription_of_another_session_cannot_be_deleted(self, own: Client, subscription: int) -> None:
        assert await own.uaclient.delete_subscriptions([subscription, 999_999]) == [NOT_YOURS, NOT_YOURS]

    async def test_subscription_of_another_session_cannot_be_disabled(self, own: Client, subscription: int) -> None:
        parameters = ua.SetPublishingModeParameters(PublishingEnabled=False, SubscriptionIds=[subscription])
        assert await own.uaclient.set_publishing_mode(parameters) == [NOT_YOURS]

    async def test_monitored_items_of_another_session_cannot_be_changed(self, own: Client, subscription: int) -> None:
        change = ua.MonitoredItemModifyRequest(MonitoredItemId=1, RequestedParameters=ua.MonitoringParameters())
        for attempt in (
            own.uaclient.create_monitored_items(
                ua.CreateMonitoredItemsParameters(SubscriptionId=subscription, ItemsToCreate=[item()])
            ),
            own.uaclient.modify_monitored_items(
                ua.ModifyMonitoredItemsParameters(SubscriptionId=subscription, ItemsToModify=[change])
            ),
            own.uaclient.delete_monitored_items(
                ua.DeleteMonitoredItemsParameters(SubscriptionId=subscription, MonitoredItemIds=[1, 2])
            ),
            own.uaclient.set_monitoring_mode(
                ua.SetMonitoringModeParameters(SubscriptionId=subscription, MonitoredItemIds=[1])
            ),
            own.uaclient.update_subscription(ua.ModifySubscriptionParameters(SubscriptionId=subscription)),
        ):
            with pytest.raises(ua.uaerrors.BadSubscriptionIdInvalid):
                await attempt

    async def test_notifications_of_another_session_cannot_be_read(self, own: Client, subscription: int) -> None:
        again = ua.RepublishRequest()
        again.Parameters.SubscriptionId, again.Parameters.RetransmitSequenceNumber = subscription, 1
        with pytest.raises(ua.uaerrors.BadSubscriptionIdInvalid):
            await own.uaclient.protocol.send_request(again)
        (result,) = await own.uaclient.transfer_subscriptions(
            ua.TransferSubscriptionsParameters(SubscriptionIds=[subscription])
        )
        assert result.StatusCode.value == ua.StatusCodes.BadUserAccessDenied

    async def test_notifications_of_other_sessions_cannot_be_acknowledged(self, own: Client, subscription: int) -> None:
        ack = ua.SubscriptionAcknowledgement(SubscriptionId=subscription, SequenceNumber=1)
        with pytest.raises(ua.uaerrors.BadNoSubscription):
            await own.uaclient.publish([ack])
        await own.uaclient.create_subscription(asked(), lambda _: None)
        answer = await own.uaclient.publish([ack])
        assert answer.Parameters.Results == [NOT_YOURS]

    async def test_asyncua_allows_deleting_subscriptions_of_other_sessions(self) -> None:
        # When this fails, remove `ServerSession.delete_subscriptions` and the similar methods.
        plain = InternalServer()
        mine, theirs = (plain.create_session("x", external=True) for _ in range(2))
        made = await mine.create_subscription(asked(), print)
        (deleted,) = await theirs.delete_subscriptions([made.SubscriptionId])
        assert deleted.is_good()


async def test_subscription_is_transferred_to_the_same_user_and_application(
    secure: UaServer, friend: Application
) -> None:
    async with (
        connected(secure.endpoint, friend, user="operator") as before,
        connected(secure.endpoint, friend, user="operator") as after,
        connected(secure.endpoint, friend, user="engineer") as other,
    ):
        made = await before.uaclient.create_subscription(asked(50), lambda _: None)
        transfer = ua.TransferSubscriptionsParameters(SubscriptionIds=[made.SubscriptionId])
        (result,) = await other.uaclient.transfer_subscriptions(transfer)
        assert result.StatusCode.value == ua.StatusCodes.BadUserAccessDenied
        (result,) = await after.uaclient.transfer_subscriptions(transfer)
        assert result.StatusCode.is_good()
        answer = await after.uaclient.publish([])
        assert answer.Parameters.SubscriptionId == made.SubscriptionId


class TestReason:
    @pytest.mark.parametrize(
        ("wanted", "given"),
        [(0.01, 50), (0, 50), (-1, 50), (float("nan"), 50), (250, 250), (float("inf"), 3_600_000)],
    )
    async def test_notifications_come_no_faster_than_the_limit(self, own: Client, wanted: float, given: float) -> None:
        made = await own.uaclient.create_subscription(asked(wanted), lambda _: None)
        assert made.RevisedPublishingInterval == given

    @pytest.mark.parametrize("lifetime", [0, 2**32 - 1])
    async def test_a_subscription_without_publish_requests_ends_in_an_hour(self, own: Client, lifetime: int) -> None:
        made = await own.uaclient.create_subscription(asked(1000, lifetime), lambda _: None)
        assert made.RevisedLifetimeCount == 3600

    @pytest.mark.parametrize(("keep_alive", "lifetime"), [(0, 100), (90, 100), (10, 1), (5000, 10_000), (10, 0)])
    async def test_a_lifetime_is_at_least_three_keep_alive_intervals(
        self, own: Client, keep_alive: int, lifetime: int
    ) -> None:
        wanted = asked(1000, lifetime)
        wanted.RequestedMaxKeepAliveCount = keep_alive
        made = await own.uaclient.create_subscription(wanted, lambda _: None)
        assert 1 <= made.RevisedMaxKeepAliveCount * 3 <= made.RevisedLifetimeCount

    async def test_subscriptions_of_a_session_are_limited(self, own: Client) -> None:
        for _ in range(limits.DEFAULTS.subscriptions_of_session):
            await own.uaclient.create_subscription(asked(3_600_000), lambda _: None)
        with pytest.raises(ua.uaerrors.BadTooManySubscriptions):
            await own.uaclient.create_subscription(asked(), lambda _: None)
        assert await serves(own)

    async def test_monitored_items_of_a_session_are_limited(self, own: Client) -> None:
        made = await own.uaclient.create_subscription(asked(3_600_000), lambda _: None)
        parameters = ua.CreateMonitoredItemsParameters(
            SubscriptionId=made.SubscriptionId, ItemsToCreate=[item()] * 1000
        )
        for _ in range(limits.DEFAULTS.monitored_items_of_session // 1000):
            assert len(await own.uaclient.create_monitored_items(parameters)) == 1000
        with pytest.raises(ua.uaerrors.BadTooManyMonitoredItems):
            await own.uaclient.create_monitored_items(parameters)

    @pytest.mark.parametrize(("wanted", "given"), [(0, 1), (5, 5), (2**32 - 1, limits.DEFAULTS.queued_values)])
    async def test_queue_size_of_a_monitored_item_is_limited(self, own: Client, wanted: int, given: int) -> None:
        made = await own.uaclient.create_subscription(asked(), lambda _: None)
        (result,) = await own.uaclient.create_monitored_items(
            ua.CreateMonitoredItemsParameters(SubscriptionId=made.SubscriptionId, ItemsToCreate=[item(queue=wanted)])
        )
        assert result.RevisedQueueSize == given
        change = ua.MonitoringParameters(QueueSize=wanted)
        (changed,) = await own.uaclient.modify_monitored_items(
            ua.ModifyMonitoredItemsParameters(
                SubscriptionId=made.SubscriptionId,
                ItemsToModify=[ua.MonitoredItemModifyRequest(result.MonitoredItemId, change)],
            )
        )
        assert changed.RevisedQueueSize == given

    @pytest.mark.parametrize("wanted", [float("nan"), float("inf"), -1.0])
    async def test_invalid_session_timeout_is_clamped(self, server: UaServer, wanted: float) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            client.session_timeout = wanted
            made = await client.create_session()
            assert 5_000 <= made.RevisedSessionTimeout <= 600_000

    @pytest.mark.parametrize("too_many", ["elements", "clauses"])
    async def test_a_filter_has_a_bounded_number_of_parts(self, own: Client, too_many: str) -> None:
        element = ua.ContentFilterElement(ua.FilterOperator.IsNull, [ua.LiteralOperand()])
        elements, clauses = [element] * limits.FILTER_ELEMENTS, [ua.SimpleAttributeOperand()] * limits.SELECT_CLAUSES
        assert await monitor_events(own, event_filter(clauses, elements)) == ua.StatusCodes.Good
        wanted = event_filter(clauses, elements + [element] * (too_many == "elements"))
        wanted.SelectClauses = clauses + clauses[:1] * (too_many == "clauses")
        assert await monitor_events(own, wanted) == ua.StatusCodes.BadEventFilterInvalid


def event_filter(clauses: list[ua.SimpleAttributeOperand], elements: list[ua.ContentFilterElement]) -> ua.EventFilter:
    return ua.EventFilter(SelectClauses=clauses, WhereClause=ua.ContentFilter(Elements=elements))


async def monitor_events(client: Client, wanted: ua.EventFilter) -> int:
    made = await client.uaclient.create_subscription(asked(), lambda _: None)
    events = item(ua.NodeId(ua.ObjectIds.Server))
    events.ItemToMonitor.AttributeId = ua.AttributeIds.EventNotifier
    events.RequestedParameters.Filter = wanted
    (created,) = await client.uaclient.create_monitored_items(
        ua.CreateMonitoredItemsParameters(SubscriptionId=made.SubscriptionId, ItemsToCreate=[events])
    )
    return int(created.StatusCode.value)


class TestOperations:
    async def test_request_with_too_many_operations_is_refused(self, own: Client) -> None:
        read = ua.ReadValueId(NodeId=STATE, AttributeId=ua.AttributeIds.Value)
        made = await own.uaclient.create_subscription(asked(), lambda _: None)
        too_many = {
            "read": own.uaclient.read(ua.ReadParameters(NodesToRead=[read] * 1001)),
            "write": own.uaclient.write(ua.WriteParameters(NodesToWrite=[ua.WriteValue()] * 1001)),
            "browse": own.uaclient.browse(ua.BrowseParameters(NodesToBrowse=[ua.BrowseDescription()] * 501)),
            "translate": own.uaclient.translate_browsepaths_to_nodeids([ua.BrowsePath()] * 501),
            "call": own.uaclient.call([ua.CallMethodRequest()] * 101),
            "history": own.uaclient.history_read(
                ua.HistoryReadParameters(NodesToRead=[ua.HistoryReadValueId()] * 1001)
            ),
            "monitor": own.uaclient.create_monitored_items(
                ua.CreateMonitoredItemsParameters(SubscriptionId=made.SubscriptionId, ItemsToCreate=[item()] * 1001)
            ),
        }
        for attempt in too_many.values():
            with pytest.raises(ua.uaerrors.BadTooManyOperations):
                await attempt
        assert await serves(own)

    async def test_request_without_operations_returns_nothing_to_do(self, own: Client) -> None:
        with pytest.raises(ua.uaerrors.BadNothingToDo):
            await own.uaclient.read(ua.ReadParameters())

    async def test_empty_browse_path_does_not_affect_other_paths(self, own: Client) -> None:
        step = ua.RelativePathElement(
            ReferenceTypeId=ua.NodeId(ua.ObjectIds.HierarchicalReferences),
            IncludeSubtypes=True,
            IsInverse=False,
            TargetName=ua.QualifiedName("Server"),
        )
        paths = [ua.BrowsePath(StartingNode=own.nodes.objects.nodeid) for _ in range(2)]
        paths[1].RelativePath.Elements = [step]
        nothing, found = await own.uaclient.translate_browsepaths_to_nodeids(paths)
        assert nothing.StatusCode.value == ua.StatusCodes.BadNothingToDo
        assert [target.TargetId for target in found.Targets] == [own.nodes.server.nodeid]

    async def test_negative_max_age_is_refused(self, own: Client) -> None:
        read = ua.ReadValueId(NodeId=STATE, AttributeId=ua.AttributeIds.Value)
        with pytest.raises(ua.uaerrors.BadMaxAgeInvalid):
            await own.uaclient.read(ua.ReadParameters(NodesToRead=[read], MaxAge=-1.0))

    async def test_missing_history_is_reported(self, own: Client) -> None:
        asked_for = ua.HistoryReadParameters(
            HistoryReadDetails=ua.ReadRawModifiedDetails(), NodesToRead=[ua.HistoryReadValueId(NodeId=STATE)]
        )
        (found,) = await own.uaclient.history_read(asked_for)
        assert found.StatusCode.value == ua.StatusCodes.BadHistoryOperationUnsupported

    async def test_advertised_operation_limits_equal_the_enforced_ones(self, own: Client) -> None:
        for name, most in limits.DEFAULTS.operations.items():
            node = getattr(ua.ObjectIds, f"Server_ServerCapabilities_OperationLimits_{name}")
            assert await own.get_node(node).read_value() == most

    async def test_announced_request_size_equals_the_limit(self, server: UaServer) -> None:
        async with channel(patient_client(server.endpoint)) as client:
            assert (await client.create_session()).MaxRequestMessageSize == limits.REQUEST_BYTES

    async def test_too_large_request_is_refused_and_keeps_the_connection(self, own: Client) -> None:
        node = own.get_node(ua.ObjectIds.Server_ServiceLevel)
        with pytest.raises(ua.uaerrors.BadRequestTooLarge):
            await node.write_value(ua.Variant(bytes(limits.REQUEST_BYTES), ua.VariantType.ByteString))
        assert await serves(own)

    async def test_too_large_message_does_not_affect_other_connections(self, server: UaServer, client: Client) -> None:
        sending = patient_client(server.endpoint)
        await sending.connect()
        node = sending.get_node(ua.ObjectIds.Server_ServiceLevel)
        with pytest.raises(ua.uaerrors.BadRequestTooLarge):
            await node.write_value(ua.Variant(bytes(limits.MESSAGE_BYTES), ua.VariantType.ByteString))
        assert await serves(client)
        with contextlib.suppress(ConnectionError, ua.UaError):
            await sending.disconnect()


async def test_user_executable_is_right_for_each_user(space: Space, own: Client) -> None:
    # The attribute is computed for each caller and not cached for the next one.
    method = await space.member("JobOrderControl", "Store")
    before = (await method.read_attribute(ua.AttributeIds.UserExecutable)).Value.Value
    again = (await own.get_node(method.nodeid).read_attribute(ua.AttributeIds.UserExecutable)).Value.Value
    assert before is again is False
