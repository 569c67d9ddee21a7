"""The flows of the store for a client that browses, reads, subscribes and calls."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, ua
from msgspec.structs import replace

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.flow_view import FlowView
from edge.features.flows.opcua import CYCLE_STATE, FLOW, FLOW_STATE, MOST_FLOWS, FlowNodes, add_flow_types
from edge.features.flows.state import FlowStatus
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role
from edge.uaserver.namespaces import TYPES_URI, application_uri
from edge.uaserver.parts import NewServer, ServerPart
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.running import Space, served

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

VIEW = FlowView(
    state="running",
    last_cycle=7,
    cycle_state="completed",
    cycle_at=1_767_322_800_000,
    duration_ms=250,
    next_at=1_767_322_860_000,
    completed=6,
    failed=1,
    missed=2,
)


class Flows:
    """The flows of a server, and what was called; a call fails with `failure`."""

    nodes: FlowNodes

    def __init__(self) -> None:
        self.called: list[tuple[str, ...]] = []
        self.failure: Exception | None = None

    async def add(self, new: NewServer) -> ServerPart:
        """Add flows to a server."""
        add_flow_types(new.core)
        self.nodes = FlowNodes(new.core, self)
        return ServerPart(self.nodes.target_of)

    async def start(self, flow_id: str) -> None:
        if self.failure:
            raise self.failure
        self.called.append(("start", flow_id))

    async def stop(self, flow_id: str, reason: str | Text) -> None:
        self.called.append(("stop", flow_id, str(reason)))


_SHOWN = Flows()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served(parts=[_SHOWN.add]) as running:
        notifying = asyncio.create_task(_SHOWN.nodes.notify_subscribers())
        yield running
        notifying.cancel()


@pytest.fixture
def flows(server: UaServer) -> FlowNodes:
    """The flows of the server."""
    del server
    return _SHOWN.nodes


async def flow_node(space: Space, flow_id: str) -> Node:
    """Find the object of a flow; its name is in the server's own namespace."""
    own = application_uri("edge")
    path = [space.name("Gateway", TYPES_URI), space.name("Flows", TYPES_URI), space.name(flow_id, own)]
    return await space.client.nodes.objects.get_child(path)


async def member(space: Space, flow_id: str, name: str) -> Node:
    return await (await flow_node(space, flow_id)).get_child([space.name(name, TYPES_URI)])


async def test_flow_can_be_read(flows: FlowNodes, space: Space, client: Client) -> None:
    flows.show("press/report", VIEW)
    found = await flow_node(space, "press/report")
    assert found.nodeid == ua.NodeId("Gateway/Flows/press%2Freport", 1)
    values = {
        variable_spec.name: await (await member(space, "press/report", variable_spec.name)).read_value()
        for variable_spec in FLOW
    }
    assert values == {
        "State": FLOW_STATE.values.index("running"),
        "Reason": "",
        "LastCycle": 7,
        "LastCycleState": CYCLE_STATE.values.index("completed"),
        "LastCycleAt": datetime(2026, 1, 2, 3, 0, tzinfo=UTC),
        "LastCycleDuration": 250.0,
        "NextCycle": datetime(2026, 1, 2, 3, 1, tzinfo=UTC),
        "CyclesCompleted": 6,
        "CyclesFailed": 1,
        "CyclesTerminated": 0,
        "CyclesMissed": 2,
    }
    kind = client.get_node(await found.read_type_definition())
    assert (await kind.read_browse_name()).Name == "FlowType"
    for spec in FLOW:
        declared = await kind.get_child([space.name(spec.name, TYPES_URI)])
        made = await member(space, "press/report", spec.name)
        assert await made.read_data_type() == await declared.read_data_type() == spec.data_type


async def test_cycle_states_are_those_of_the_engine(flows: FlowNodes, space: Space) -> None:
    """Before the first cycle there was an empty text."""
    assert CYCLE_STATE.values == ("none", *map(str, CycleStatus))
    flows.show("idle", replace(VIEW, cycle_state=""))
    assert await (await member(space, "idle", "LastCycleState")).read_value() == 0
    flows.hide("idle")


async def test_duration_of_a_cycle_has_its_unit(flows: FlowNodes, space: Space) -> None:
    flows.show("timed", VIEW)
    duration = await member(space, "timed", "LastCycleDuration")
    assert (await duration.read_type_definition()).Identifier == ua.ObjectIds.AnalogUnitType
    unit = await (await duration.get_child("0:EngineeringUnits")).read_value()
    assert (unit.UnitId, unit.DisplayName.Text) == (int.from_bytes(b"C26"), "ms")
    flows.hide("timed")


async def test_flow_ids_that_contain_each_other_have_separate_nodes(flows: FlowNodes, space: Space) -> None:
    flows.show("a", VIEW)
    flows.show("a/State", replace(VIEW, state="stopped"))
    assert await (await member(space, "a", "State")).read_value() == FLOW_STATE.values.index("running")
    assert await (await member(space, "a/State", "State")).read_value() == FLOW_STATE.values.index("stopped")
    flows.hide("a/State")
    assert await (await member(space, "a", "State")).read_value() == FLOW_STATE.values.index("running")
    flows.hide("a")


async def test_subscriber_gets_changed_values_and_the_end(flows: FlowNodes, space: Space, client: Client) -> None:
    flows.show("tick", VIEW)
    notified: asyncio.Queue[Any] = asyncio.Queue()

    class Listener:
        def datachange_notification(self, node: Node, value: Any, data: Any) -> None:
            status = data.monitored_item.Value.StatusCode
            notified.put_nowait((node.nodeid.Identifier.rpartition("/")[2], value if status.is_good() else status.name))

    subscription = await client.create_subscription(50, Listener())
    nodes = [await member(space, "tick", name) for name in ("State", "LastCycle")]
    handles = await subscription.subscribe_data_change(nodes)
    async with asyncio.timeout(30):
        assert {await notified.get(), await notified.get()} == {
            ("State", FLOW_STATE.values.index("running")),
            ("LastCycle", 7),
        }
        flows.show("tick", replace(VIEW, last_cycle=8))
        assert await notified.get() == ("LastCycle", 8)
        flows.hide("tick")
        assert {(await notified.get())[1] for _ in nodes} == {"BadNodeIdUnknown"}
    await subscription.unsubscribe(handles)
    await subscription.delete()
    with pytest.raises(ua.UaStatusCodeError):
        await flow_node(space, "tick")


async def test_flow_that_is_registered_again_can_be_read(flows: FlowNodes, space: Space) -> None:
    for state in ("registered", "stopped"):
        flows.show("again", replace(VIEW, state=state))
        assert await (await member(space, "again", "State")).read_value() == FLOW_STATE.values.index(state)
        flows.hide("again")
        flows.hide("again")


async def test_flows_beyond_the_limit_are_not_shown(flows: FlowNodes, space: Space) -> None:
    names = [f"f{number}" for number in range(MOST_FLOWS + 1)]
    for name in names:
        flows.show(name, VIEW)
    with pytest.raises(ua.UaStatusCodeError):
        await flow_node(space, names[-1])
    for name in names:
        flows.hide(name)


async def call(space: Space, flow_id: str, method: str, *arguments: ua.Variant) -> ua.CallMethodResult:
    found = await flow_node(space, flow_id)
    request = ua.CallMethodRequest(
        ObjectId=found.nodeid,
        MethodId=(await found.get_child([space.name(method, TYPES_URI)])).nodeid,
        InputArguments=list(arguments),
    )
    (result,) = await space.client.uaclient.call([request])
    return result


@pytest.mark.parametrize(("role", "good"), [(Role.OBSERVER, False), (Role.OPERATOR, True), (Role.ENGINEER, True)])
async def test_operator_starts_and_stops_a_flow(role: Role, *, good: bool) -> None:
    flows = Flows()
    async with served(role=role, parts=[flows.add]) as server:
        flows.nodes.show("tick", VIEW)
        async with patient_client(server.endpoint) as client:
            space = Space(client, await client.get_namespace_array())
            started = await call(space, "tick", "Start")
            stopped = await call(space, "tick", "Stop", ua.Variant("night", ua.VariantType.String))
    assert [started.StatusCode.name, stopped.StatusCode.name] == ["Good" if good else "BadUserAccessDenied"] * 2
    assert flows.called == ([("start", "tick"), ("stop", "tick", "night")] if good else [])


async def test_failed_call_is_answered_with_an_error() -> None:
    flows = Flows()
    async with served(role=Role.OPERATOR, parts=[flows.add]) as server:
        flows.nodes.show("tick", VIEW)
        async with patient_client(server.endpoint) as client:
            space = Space(client, await client.get_namespace_array())
            wrong = await call(space, "tick", "Stop", ua.Variant(5, ua.VariantType.Int32))
            missing = await call(space, "tick", "Stop")
            flows.failure = Refused("unknown_flow", "there is no flow 'tick'.")
            refused = await call(space, "tick", "Start")
    assert wrong.StatusCode.value == ua.StatusCodes.BadInvalidArgument
    assert missing.StatusCode.value == ua.StatusCodes.BadArgumentsMissing
    assert refused.StatusCode.name == "Uncertain"
    assert refused.OutputArguments[0].Value == 1 << 32


async def test_states_of_a_flow_are_those_of_its_record() -> None:
    """The types of flows in OPC UA import no engine of flows."""
    assert FLOW_STATE.values == tuple(FlowStatus)
