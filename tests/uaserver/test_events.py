"""Events for changes of state, as clients receive them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, ua
from asyncua.ua.ua_binary import struct_to_binary

from edge.model.isa95 import JobStatusEvent
from edge.model.job_state import JobState
from edge.uaserver.encoding import extension_object
from edge.uaserver.namespaces import TYPES_URI
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.running import UA, Space, entry, response

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOP = (("EventType", 0), ("SourceName", 0), ("Time", 0), ("Message", 0), ("Severity", 0), ("EventId", 0))


def status_event(job_order_id: str, state: JobState = JobState.ENDED) -> JobStatusEvent:
    job_order_and_state = entry(job_order_id, state)
    return JobStatusEvent(
        job_order=job_order_and_state.job_order,
        job_state=job_order_and_state.state,
        job_response=response(job_order_id),
    )


class Ear:
    """A subscription handler that collects the fields of the received events."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[list[Any]] = asyncio.Queue()

    def event_notification(self, event: Any) -> None:
        self.heard.put_nowait([field.Value for field in event.event_fields])

    async def next(self) -> list[Any]:
        async with asyncio.timeout(60):
            return await self.heard.get()


async def results(space: Space, scope: str = "station-1") -> Node:
    return await (await space.job_management(scope)).get_child([space.name("JobOrderResults", UA + "Machinery/Jobs/")])


def select(space: Space) -> list[ua.SimpleAttributeOperand]:
    isa95 = space.index[UA + "ISA95-JOBCONTROL_V2/"]
    names = [*TOP, *((name, isa95) for name in ("JobOrder", "JobState", "JobResponse")), ("Unheard", 0)]
    return [
        ua.SimpleAttributeOperand(
            TypeDefinitionId=ua.NodeId(ua.ObjectIds.BaseEventType),
            BrowsePath=[ua.QualifiedName(name, index)],
            AttributeId=ua.AttributeIds.Value,
        )
        for name, index in names
    ]


def of_type(type_id: ua.NodeId) -> ua.ContentFilter:
    operand = ua.LiteralOperand(Value=ua.Variant(type_id, ua.VariantType.NodeId))
    return ua.ContentFilter(
        Elements=[ua.ContentFilterElement(FilterOperator=ua.FilterOperator.OfType, FilterOperands=[operand])]
    )


class Listening:
    """Subscriptions to the events of nodes until the end of the test."""

    def __init__(self, client: Client, space: Space) -> None:
        self._client = client
        self._space = space
        self.subscriptions: list[Any] = []

    async def __call__(self, node: Node, where: ua.ContentFilter | None = None) -> Ear:
        ear = Ear()
        subscription = await self._client.create_subscription(20, ear)
        self.subscriptions.append(subscription)
        wanted = ua.EventFilter(SelectClauses=select(self._space), WhereClause=where or ua.ContentFilter())
        await subscription.subscribe_events(node, evfilter=wanted)
        return ear


@pytest_asyncio.fixture(loop_scope="module")
async def listen(client: Client, space: Space) -> AsyncIterator[Listening]:
    listening = Listening(client, space)
    yield listening
    for subscription in listening.subscriptions:
        await subscription.delete()


async def test_a_change_is_reported_with_order_state_and_response(
    server: UaServer, space: Space, listen: Listening
) -> None:
    ear = await listen(await results(space))
    await server.publish_event("station-1", status_event("job-1"), AT)
    event_type, source, time, message, severity, event_id, order, state, answer, unheard = await ear.next()
    assert event_type == ua.NodeId("JobOrderStatusEventType", space.index[TYPES_URI])
    assert (source, time, message.Text) == ("station-1", AT, "job-1: Ended")
    assert (severity, len(event_id), unheard) == (100, 16, None)
    assert struct_to_binary(order) == extension_object(status_event("job-1").job_order).Body
    assert [struct_to_binary(value) for value in state] == [
        extension_object(item).Body for item in status_event("job-1").job_state
    ]
    assert struct_to_binary(answer) == extension_object(response("job-1")).Body


async def test_message_of_a_change_is_in_the_language_of_the_session(server: UaServer, space: Space) -> None:
    client = patient_client(server.endpoint)
    client.set_locale(["de-DE"])
    async with client:
        ear = await Listening(client, space)(client.nodes.server)
        await server.publish_event("station-1", status_event("job-1"), AT)
        message = (await ear.next())[3]
    assert (message.Text, message.Locale) == ("job-1: Beendet", "de")


async def test_server_subscriber_receives_events_of_every_machine(
    client: Client, server: UaServer, listen: Listening
) -> None:
    ear = await listen(client.nodes.server)
    for scope in ("station-1", "station-2"):
        await server.publish_event(scope, status_event("job-1"), AT)
    assert [(await ear.next())[1] for _ in range(2)] == ["station-1", "station-2"]


async def test_machine_subscriber_receives_no_events_of_other_machines(
    server: UaServer, space: Space, listen: Listening
) -> None:
    ear = await listen(await results(space, "station-2"))
    await server.publish_event("station-1", status_event("job-1"), AT)
    await server.publish_event("station-2", status_event("job-2"), AT)
    assert (await ear.next())[3].Text == "job-2: Ended"


@pytest.mark.parametrize("name", ["our own type", "the official type", "BaseEventType"])
async def test_event_matches_its_type_and_its_base_types(
    client: Client, server: UaServer, space: Space, listen: Listening, name: str
) -> None:
    type_id = {
        "our own type": ua.NodeId("JobOrderStatusEventType", space.index[TYPES_URI]),
        "the official type": ua.NodeId(1006, space.index[UA + "ISA95-JOBCONTROL_V2/"]),
        "BaseEventType": ua.NodeId(ua.ObjectIds.BaseEventType),
    }[name]
    ear = await listen(client.nodes.server, of_type(type_id))
    await server.publish_event("station-1", status_event("job-1"), AT)
    assert (await ear.next())[3].Text == "job-1: Ended"


async def test_event_does_not_match_another_type(client: Client, server: UaServer, listen: Listening) -> None:
    none = await listen(client.nodes.server, of_type(ua.NodeId(ua.ObjectIds.AuditEventType)))
    every = await listen(client.nodes.server)
    await server.publish_event("station-1", status_event("job-1"), AT)
    await every.next()
    assert none.heard.empty()


async def test_change_before_the_start_has_no_response(server: UaServer, space: Space, listen: Listening) -> None:
    ear = await listen(await results(space))
    job_order_and_state = entry("job-1")
    await server.publish_event(
        "station-1", JobStatusEvent(job_order=job_order_and_state.job_order, job_state=job_order_and_state.state), AT
    )
    assert (await ear.next())[8] in (None, ua.ExtensionObject())


async def test_notifiers_lead_from_the_server_object_to_the_results(client: Client, space: Space) -> None:
    """Machines had all events, and no reference said from where."""
    machines = await client.nodes.objects.get_child([space.name("Machines", UA + "Machinery/")])
    chain = [client.nodes.server, machines, await space.machine(), await results(space)]
    for above, below in pairwise(chain):
        references = await above.get_references(ua.ObjectIds.HasNotifier, ua.BrowseDirection.Forward)
        assert below.nodeid in {reference.NodeId for reference in references}
    for node in chain:
        assert await node.read_event_notifier() == {ua.EventNotifier.SubscribeToEvents}


async def test_job_state_reaches_the_machine_and_the_folder(
    server: UaServer, space: Space, client: Client, listen: Listening
) -> None:
    """People look at the machine: its item, and that of Machines, which is a notifier, never received an event."""
    machines = await client.nodes.objects.get_child([space.name("Machines", UA + "Machinery/")])
    ears = [await listen(node) for node in (await space.machine(), machines)]
    await server.publish_event("station-1", status_event("job-1"), AT)
    for ear in ears:
        assert (await ear.next())[1] == "station-1"


@pytest.mark.parametrize(
    ("state", "severity"), [(JobState.RUNNING, 100), (JobState.INTERRUPTED, 400), (JobState.ABORTED, 700)]
)
async def test_the_severity_of_an_event_follows_the_state(
    server: UaServer, client: Client, space: Space, state: JobState, severity: int
) -> None:
    ear = Ear()
    subscription = await client.create_subscription(50, ear)
    await subscription.subscribe_events(client.nodes.server, evfilter=ua.EventFilter(SelectClauses=select(space)))
    await server.publish_event("station-1", status_event("job-1", state), AT)
    assert (await ear.next())[4] == severity
    await subscription.delete()
