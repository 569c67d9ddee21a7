"""Variables of a real OPC UA server are read and written over one session, opened again after a loss."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asyncua import ua

from edge.config import OpcuaEquipmentSettings
from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import VariableValue, WriteVariable
from edge.features.flows.ports.variables import VariableClient
from edge.foundation.errors import Unavailable
from edge.links.opcua import ClientSession, Node
from edge.links.simulated_device import OpcuaDevice, open_device

pytestmark = pytest.mark.asyncio(loop_scope="module")
URI = "urn:microdcs-edge:sim:device"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def device() -> AsyncIterator[OpcuaDevice]:
    """A server with variables of several types."""
    async with open_device("device", ()) as running:
        objects = running.server.nodes.objects
        for name, value, kind in (
            ("speed", 3.5, ua.VariantType.Double),
            ("count", 7, ua.VariantType.UInt16),
            ("name", "press", ua.VariantType.String),
            ("list", [1, 2], ua.VariantType.Int32),
        ):
            added = await objects.add_variable(ua.NodeId(name, running.index), name, value, kind)
            await added.set_writable()
        await objects.add_variable(ua.NodeId("fixed", running.index), "fixed", 1)
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(device: OpcuaDevice) -> AsyncIterator[VariableClient]:
    section = OpcuaEquipmentSettings(kind="vision", type_ids=("x",), url=device.url, security="none")
    variable_client = VariableClient({"press": section})
    yield variable_client
    await variable_client.close()


async def read(client: VariableClient, name: str) -> Any:
    return await client.read(VariableValue("press", f"nsu={URI};s={name}"), "")


async def write(client: VariableClient, name: str, value: object) -> Any:
    return await client.write(WriteVariable("press", f"nsu={URI};s={name}", value), "t")


async def test_variables_are_read_by_namespace_and_by_index(client: VariableClient, device: OpcuaDevice) -> None:
    assert await read(client, "name") == "press"
    assert await client.read(VariableValue("press", f"ns={device.index};s=name"), "") == "press"
    assert isinstance(await client.read(VariableValue("press", "i=2258"), ""), str)


@pytest.mark.parametrize(("name", "value"), [("speed", 4.25), ("count", 9), ("list", [3, 4, 5]), ("speed", 2)])
async def test_written_value_is_read(client: VariableClient, name: str, value: object) -> None:
    assert await write(client, name, value) == {"equipment": "press", "node": f"nsu={URI};s={name}"}
    assert await read(client, name) == value


@pytest.mark.parametrize(("name", "value"), [("count", -1), ("count", "x"), ("speed", {"a": 1}), ("fixed", 2)])
async def test_value_not_accepted_by_the_variable_fails_the_node(
    client: VariableClient, name: str, value: object
) -> None:
    before = await read(client, name)
    with pytest.raises(NodeError):
        await write(client, name, value)
    assert await read(client, name) == before


@pytest.mark.parametrize("node", ["nsu=urn:other;s=speed", f"nsu={URI};what", "what", "", "ns=99999999999;i=1"])
async def test_unresolvable_node_id_fails_the_node(client: VariableClient, node: str) -> None:
    with pytest.raises(NodeError):
        await client.read(VariableValue("press", node), "")


async def test_unknown_node_is_reported(client: VariableClient) -> None:
    with pytest.raises((NodeError, Unavailable), match=r"BadNodeIdUnknown|refers to a node"):
        await read(client, "nothing")


async def test_unknown_equipment_fails_the_node(client: VariableClient) -> None:
    with pytest.raises(NodeError, match="no OPC UA equipment 'saw'; known: press"):
        await client.read(VariableValue("saw", "i=2258"), "")


async def test_session_is_opened_again_after_a_loss(client: VariableClient, device: OpcuaDevice) -> None:
    await write(client, "count", 1)
    async with device.unplugged():
        with pytest.raises(Unavailable):
            await read(client, "count")
        with pytest.raises(Unavailable):
            await write(client, "count", 2)
    assert await read(client, "count") == 1
    assert await write(client, "count", 3)


async def test_write_without_a_reply_has_an_unknown_outcome() -> None:
    class Silent:
        async def node(self, node_id: str) -> Node:
            return Node(node_id, node_id)

        async def read(self, _: Node) -> int:
            return 1

        async def write(self, _node: Node, _value: object) -> None:
            raise Unavailable("no answer in time")

    @contextlib.asynccontextmanager
    async def opened(_: OpcuaEquipmentSettings) -> AsyncIterator[ClientSession]:
        yield Silent()  # type: ignore[misc]

    section = OpcuaEquipmentSettings(kind="vision", type_ids=("x",), url="opc.tcp://127.0.0.1:1", security="none")
    with pytest.raises(OutcomeUnknownError, match="no answer"):
        await VariableClient({"press": section}, opened).write(WriteVariable("press", "i=1", 2), "t")
