"""An answer beyond the limits of a client: the client receives an error status and keeps its connection."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.common.events import Event

from edge.model.isa95 import JobOrder, JobOrderAndState, JobStatusEvent, LocalizedText
from edge.model.job_state import JobState, JobStatus, state_entries
from edge.opcua import limits
from edge.uaserver.server import UaServer
from edge.uaserver.space import JOB_ORDER_STATUS_EVENT
from tests.opcua_client import patient_client
from tests.uaserver.clients import Application, connected, serves
from tests.uaserver.running import Space

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MEBIBYTE = 2**20
FEW = 65_536  # the maximum message size of the modest client, in bytes
TOO_LARGE = ua.StatusCode(ua.StatusCodes.BadResponseTooLarge)
IDLE = state_entries(JobStatus(JobState.NOT_ALLOWED_TO_START))


def large(job_order_id: str, size: int) -> JobOrderAndState:
    order = JobOrder(job_order_id=job_order_id, description=(LocalizedText(text="x" * size),))
    return JobOrderAndState(job_order=order, state=IDLE)


class Listener:
    """A subscription handler that collects values and events."""

    def __init__(self) -> None:
        self.values = asyncio.Queue[ua.DataValue]()
        self.events = asyncio.Queue[Event]()

    def datachange_notification(self, _node: object, _value: object, data: object) -> None:
        self.values.put_nowait(data.monitored_item.Value)  # type: ignore[attr-defined]

    def event_notification(self, event: Event) -> None:
        self.events.put_nowait(event)


@pytest_asyncio.fixture(loop_scope="module")
async def modest(server: UaServer) -> AsyncIterator[Client]:
    """A client whose Hello message requests a small maximum message size."""
    client = patient_client(server.endpoint)
    client.max_messagesize = FEW
    async with client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def node(space: Space) -> ua.NodeId:
    return (await space.job_order_list()).nodeid


async def read(client: Client, node_id: ua.NodeId, index_range: str | None = None) -> ua.DataValue:
    asked = ua.ReadValueId(node_id, ua.AttributeIds.Value, IndexRange=index_range)
    (found,) = await client.uaclient.read(ua.ReadParameters(NodesToRead=[asked]))
    return found


async def test_list_larger_than_the_client_limit_is_read_in_parts(
    jobs: UaServer, modest: Client, node: ua.NodeId
) -> None:
    for number in range(4):
        jobs.show("station-1", large(f"job-{number}", 20_000), None)
    with pytest.raises(ua.uaerrors.BadResponseTooLarge):
        await read(modest, node)
    assert len((await read(modest, node, "0:2")).Value.Value) == 3
    assert len((await read(modest, node, "3")).Value.Value) == 1
    assert await serves(modest)


async def test_list_over_the_server_limit_keeps_the_connection(jobs: UaServer, client: Client, node: ua.NodeId) -> None:
    for number in range(2):
        jobs.show("station-1", large(f"job-{number}", limits.MESSAGE_BYTES // 2), None)
    with pytest.raises(ua.uaerrors.BadResponseTooLarge):
        await read(client, node)
    assert len((await read(client, node, "0")).Value.Value) == 1


async def test_client_without_a_limit_reads_a_list_of_15_mib(
    secure: UaServer, friend: Application, node: ua.NodeId
) -> None:
    for number in range(15):
        secure.show("station-1", large(f"job-{number}", MEBIBYTE), None)
    async with connected(secure.endpoint, friend) as client:
        assert len((await read(client, node)).Value.Value) == 15


async def test_subscriber_receives_bad_status_while_a_list_is_too_large(
    jobs: UaServer, modest: Client, node: ua.NodeId
) -> None:
    heard = Listener()
    subscription = await modest.create_subscription(50, heard)
    await subscription.subscribe_data_change(modest.get_node(node), queuesize=10)
    async with asyncio.timeout(60):
        assert (await heard.values.get()).StatusCode.is_good()
        jobs.show("station-1", large("job-1", FEW), None)
        data_value = await heard.values.get()
        assert (data_value.StatusCode, data_value.Value.Value) == (TOO_LARGE, None)
        assert data_value.SourceTimestamp
        jobs.hide("station-1", "job-1")
        assert (await heard.values.get()).Value.Value == []
    assert await serves(modest)


async def test_subscriber_gets_an_event_without_the_fields_that_are_too_large(jobs: UaServer, modest: Client) -> None:
    heard = Listener()
    subscription = await modest.create_subscription(50, heard)
    await subscription.subscribe_events(modest.nodes.server, evfilter=filter_of("Message", "JobOrder"))
    order = large("job-1", FEW).job_order
    async with asyncio.timeout(60):
        await jobs.publish_event("station-1", JobStatusEvent(job_order=order, job_state=IDLE), datetime.now(UTC))
        event = await heard.events.get()
    assert event.Message.Text == "job-1: NotAllowedToStart"
    assert event.JobOrder == TOO_LARGE


async def test_notifications_beyond_one_message_follow_in_order(
    jobs: UaServer, modest: Client, node: ua.NodeId
) -> None:
    heard = Listener()
    # All events happen before the first notification.
    subscription = await modest.create_subscription(500, heard)
    await subscription.subscribe_events(modest.nodes.server, evfilter=filter_of("Message", "JobOrder"))
    await subscription.subscribe_data_change(modest.get_node(node))
    names = [f"job-{number}" for number in range(20)]
    for name in names:
        order = large(name, 20_000).job_order
        await jobs.publish_event("station-1", JobStatusEvent(job_order=order, job_state=IDLE), datetime.now(UTC))
    async with asyncio.timeout(60):
        received = [await heard.events.get() for _ in names]
        assert (await heard.values.get()).StatusCode.is_good()
    assert [event.Message.Text.partition(":")[0] for event in received] == names
    assert not any(event.JobOrder == TOO_LARGE for event in received)
    assert heard.events.empty()


async def test_message_has_at_most_the_requested_notifications(jobs: UaServer, client: Client) -> None:
    counts: list[int] = []
    every = asyncio.Event()

    def heard(result: ua.PublishResult) -> None:
        counts.extend(len(value.Events) for value in result.NotificationMessage.NotificationData)
        if sum(counts) == 7:
            every.set()

    wanted = ua.CreateSubscriptionParameters(
        RequestedPublishingInterval=300, MaxNotificationsPerPublish=3, PublishingEnabled=True
    )
    made = await client.uaclient.create_subscription(wanted, heard)
    events = ua.MonitoredItemCreateRequest(
        ItemToMonitor=ua.ReadValueId(NodeId=client.nodes.server.nodeid, AttributeId=ua.AttributeIds.EventNotifier),
        MonitoringMode=ua.MonitoringMode.Reporting,
        RequestedParameters=ua.MonitoringParameters(QueueSize=100, Filter=filter_of("Message")),
    )
    await client.uaclient.create_monitored_items(
        ua.CreateMonitoredItemsParameters(SubscriptionId=made.SubscriptionId, ItemsToCreate=[events])
    )
    for number in range(7):
        order = large(f"job-{number}", 1).job_order
        await jobs.publish_event("station-1", JobStatusEvent(job_order=order, job_state=IDLE), datetime.now(UTC))
    async with asyncio.timeout(60):
        await every.wait()
    assert counts == [3, 3, 1]
    await client.uaclient.delete_subscriptions([made.SubscriptionId])


async def test_publish_with_too_many_acknowledgements_is_refused(modest: Client) -> None:
    protocol = modest.uaclient.protocol
    made = ua.CreateSubscriptionRequest()
    made.Parameters = ua.CreateSubscriptionParameters(RequestedPublishingInterval=50, PublishingEnabled=True)
    await protocol.send_request(made)
    asked = ua.PublishRequest()
    asked.Parameters.SubscriptionAcknowledgements = [ua.SubscriptionAcknowledgement()] * (FEW // 4)
    with pytest.raises(ua.uaerrors.BadRequestTooLarge):
        await protocol.send_request(asked)
    assert await serves(modest)


def filter_of(*fields: str) -> ua.EventFilter:
    isa95 = JOB_ORDER_STATUS_EVENT.NamespaceIndex
    paths = [ua.QualifiedName(name, isa95 if name == "JobOrder" else 0) for name in fields]
    clauses = [
        ua.SimpleAttributeOperand(
            TypeDefinitionId=ua.NodeId(ua.ObjectIds.BaseEventType), BrowsePath=[path], AttributeId=ua.AttributeIds.Value
        )
        for path in paths
    ]
    return ua.EventFilter(SelectClauses=clauses)
