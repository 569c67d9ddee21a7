"""The state of the gateway and its equipment for a client that browses, reads and subscribes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from asyncua import Client, Node, ua
from msgspec.structs import replace

from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth
from edge.uaserver.gateway_object import GATEWAY, equipment_members, kind_of_equipment
from edge.uaserver.namespaces import TYPES_URI, application_uri
from edge.uaserver.server import UaServer
from edge.uaserver.view import GatewayView
from tests.opcua_client import patient_client
from tests.uaserver.running import KINDS, Space, served

EQUIPMENT = equipment_members(kind_of_equipment(KINDS))
pytestmark = pytest.mark.asyncio(loop_scope="module")

WRENCH = EquipmentHealth(
    name="wrench",
    kind="mqtt",
    connected=False,
    connection=ConnectionState(
        connected=False,
        since=1_767_322_740_000,
        fault=ConnectionFault.DECLINED,
        reason="MID 0001 declined: another client is connected",
    ),
    last_seen=1_767_322_800_000,
    outstanding=2,
    answered=7,
    failed=1,
    unknown=1,
    safing=2,
    last_error="the spindle is jammed",
)
PICTURE = GatewayView(
    status="equipment disconnected: wrench; 1 job at work",
    memory_used=850,
    memory_limit=1000,
    is_nearly_full=True,
    equipment={"wrench": WRENCH, "eye/1": EquipmentHealth(name="eye/1", kind="vision")},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served(equipment=("wrench", "eye/1")) as running:
        yield running


async def test_memory_of_the_store_is_in_bytes(space: Space) -> None:
    """A client showed a number without a unit."""
    used = await member(space, "StoreMemoryUsed")
    assert (await used.read_type_definition()).Identifier == ua.ObjectIds.AnalogUnitType
    unit = await (await used.get_child("0:EngineeringUnits")).read_value()
    assert (unit.UnitId, unit.DisplayName.Text) == (int.from_bytes(b"AD"), "B")


async def member(space: Space, *names: str) -> Node:
    """Find a node below the gateway; the names of equipment are in the server's own namespace."""
    path = [space.name("Gateway", TYPES_URI)]
    for at, name in enumerate(names):
        path.append(space.name(name, application_uri("edge") if at == 1 and names[0] == "Equipment" else TYPES_URI))
    return await space.client.nodes.objects.get_child(path)


async def values(node: Node, names: list[str]) -> dict[str, Any]:
    children = {(await child.read_browse_name()).Name: child for child in await node.get_children()}
    return {name: await children[name].read_value() for name in names}


async def test_values_before_the_first_poll_are_waiting_for_initial_data(space: Space) -> None:
    for path in (("Status",), ("Equipment", "wrench", "Connected")):
        found = await (await member(space, *path)).read_data_value(raise_on_bad_status=False)
        assert found.StatusCode.value == ua.StatusCodes.BadWaitingForInitialData


async def test_release_of_equipment_names_its_arguments(space: Space) -> None:
    """They waited for initial data for ever: a client showed no arguments of the one method that releases a stop."""
    method = await member(space, "Equipment", "wrench", "ReleaseStops")
    inputs, outputs = [
        await (await method.get_child(f"0:{kind}Arguments")).read_value() for kind in ("Input", "Output")
    ]
    assert [value.Name for value in inputs] == ["Command", "Reason"]
    assert [output.Name for output in outputs] == ["ReturnStatus"]


async def test_the_gateway_and_its_equipment_can_be_read(server: UaServer, space: Space) -> None:
    await server.gateway.show(PICTURE)
    assert await values(await member(space), [variable_spec.name for variable_spec in GATEWAY]) == {
        "Status": "equipment disconnected: wrench; 1 job at work",
        "StoreMemoryUsed": 850,
        "StoreMemoryLimit": 1000,
        "StoreNearlyFull": True,
    }
    assert await values(
        await member(space, "Equipment", "wrench"), [variable_spec.name for variable_spec in EQUIPMENT]
    ) == {
        "Kind": KINDS["mqtt"],
        "Connected": False,
        "ConnectionSince": datetime(2026, 1, 2, 2, 59, tzinfo=UTC),
        "ConnectionFault": "declined",
        "ConnectionReason": "MID 0001 declined: another client is connected",
        "LastSeen": datetime(2026, 1, 2, 3, 0, tzinfo=UTC),
        "CommandsOutstanding": 2,
        "CommandsAnswered": 7,
        "CommandsFailed": 1,
        "MessagesIgnored": 0,
        "MessagesRefused": 0,
        "LastError": "the spindle is jammed",
        "Problem": "",
        "OutcomesUnknown": 1,
        "ResultsLate": 0,
        "StopsDeclined": 0,
        "StopsOpen": 2,
    }
    eye = await member(space, "Equipment", "eye/1")
    assert eye.nodeid == ua.NodeId("Gateway/Equipment/eye/1", 1)
    silent = await (await eye.get_child([space.name("Connected", TYPES_URI)])).read_data_value(
        raise_on_bad_status=False
    )
    assert silent.StatusCode.value == ua.StatusCodes.BadWaitingForInitialData


async def test_every_value_has_the_type_that_is_declared(server: UaServer, space: Space, client: Client) -> None:
    await server.gateway.show(PICTURE)
    for owner, shown in ((await member(space), GATEWAY), (await member(space, "Equipment", "wrench"), EQUIPMENT)):
        kind = client.get_node(await owner.read_type_definition())
        for variable_spec in shown:
            name = space.name(variable_spec.name, TYPES_URI)
            declared, made = await kind.get_child([name]), await owner.get_child([name])
            assert (await declared.read_description()).Text == variable_spec.description
            assert await made.read_data_type() == await declared.read_data_type() == variable_spec.data_type
            built_in = (
                ua.VariantType.Int32.value if variable_spec.name == "Kind" else variable_spec.data_type.Identifier
            )
            assert (await made.read_data_value()).Value.VariantType.value == built_in
            (rule,) = await declared.get_references(ua.ObjectIds.HasModellingRule)
            assert rule.NodeId.Identifier == ua.ObjectIds.ModellingRule_Mandatory


async def test_a_subscriber_gets_changed_values_only(server: UaServer, space: Space, client: Client) -> None:
    await server.gateway.show(PICTURE)
    notified: asyncio.Queue[Any] = asyncio.Queue()

    class Listener:
        def datachange_notification(self, _node: Node, value: Any, _data: Any) -> None:
            notified.put_nowait(value)

    subscription = await client.create_subscription(50, Listener())
    connected = await member(space, "Equipment", "wrench", "Connected")
    await subscription.subscribe_data_change([connected, await member(space, "Status")])
    assert {await asyncio.wait_for(notified.get(), 60) for _ in range(2)} == {False, PICTURE.status}
    there = msgspec.structs.replace(WRENCH, connected=True)
    await server.gateway.show(replace(PICTURE, equipment=PICTURE.equipment | {"wrench": there}))  # type: ignore[operator]
    assert await asyncio.wait_for(notified.get(), 60) is True
    await subscription.delete()
    assert notified.empty()


@pytest.mark.usefixtures("client")
async def test_the_sessions_of_clients_are_counted(server: UaServer) -> None:
    before = server.sessions
    assert before >= 1
    async with patient_client(server.endpoint):
        assert server.sessions == before + 1
    assert server.sessions == before
