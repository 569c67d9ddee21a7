"""A connection that is kept up finds its way again: after a restart, and with other namespace indexes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asyncua import Server, ua

from edge.config import OpcuaEquipmentSettings
from edge.errors import Refused
from edge.links.background import beside
from edge.links.opcua import EventField, Session, TypeName
from edge.links.opcua_link import keep_connected
from tests.conftest import WaitUntil

NAMESPACE_URI = "urn:vendor:types"


@asynccontextmanager
async def vendor(port: int, namespaces: Sequence[str]) -> AsyncIterator[tuple[Server, int]]:
    """A server whose own type has the number 5000, at the index that the order of its namespaces gives."""
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    for uri in namespaces:
        await server.register_namespace(uri)
    index = await server.get_namespace_index(NAMESPACE_URI)
    await server.nodes.base_object_type.add_object_type(ua.NodeId(5000, index), f"{index}:ToolType")
    event_type = await server.nodes.base_event_type.add_object_type(ua.NodeId(5001, index), f"{index}:DoneEventType")
    await event_type.add_property(index, "Torque", 0.0)
    await server.nodes.objects.add_object(index, "Tool", objecttype=ua.NodeId(5000, index))
    async with server:
        yield server, index


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def settings(port: int) -> OpcuaEquipmentSettings:
    url = f"opc.tcp://127.0.0.1:{port}"
    return OpcuaEquipmentSettings(kind="vision", type_ids=("a",), url=url, security="none")


async def test_after_a_restart_events_come_again_although_the_indexes_changed(wait_until: WaitUntil) -> None:
    port = free_port()
    tools: list[str] = []
    torques: list[Any] = []

    async def work(session: Session) -> None:
        (tool,) = await session.instances(TypeName(NAMESPACE_URI, 5000))
        async with session.watch(None, [EventField(TypeName(NAMESPACE_URI, 5001), "Torque")], {}) as happenings:
            tools.append(tool.path)
            async for event in happenings:
                assert await session.is_a(event["EventType"], TypeName("http://opcfoundation.org/UA/", 2041))
                torques.extend([event["Torque"]] if event["Torque"] is not None else [])

    async def tell(server: Server, index: int, torque: float) -> None:
        generator = await server.get_event_generator(ua.NodeId(5001, index))
        generator.event.Torque = torque
        await generator.trigger()

    async with beside(keep_connected(settings(port), work), "link"):
        async with vendor(port, ("urn:one", NAMESPACE_URI)) as (server, index):
            await wait_until(lambda: tools)
            await tell(server, index, 1.5)
            await wait_until(lambda: torques == [1.5])
        async with vendor(port, (NAMESPACE_URI, "urn:one")) as (server, index):
            await wait_until(lambda: len(tools) == 2, deadline=15)
            await tell(server, index, 2.5)
            await wait_until(lambda: torques == [1.5, 2.5])
    assert tools == ["/0:Objects/3:Tool", "/0:Objects/2:Tool"]


@pytest.mark.parametrize("failure", [Refused("unknown_node", "it is not ready yet"), KeyError("JobId")])
async def test_work_that_cannot_be_done_is_tried_again(wait_until: WaitUntil, failure: Exception) -> None:
    port = free_port()
    tried: list[str] = []

    async def work(session: Session) -> None:
        tried.append(session.url)
        raise failure

    async with vendor(port, (NAMESPACE_URI,)), beside(keep_connected(settings(port), work), "link"):
        await wait_until(lambda: len(tried) > 1)


async def test_it_ends_while_it_waits_for_a_server() -> None:
    async def never(_: Session) -> None:
        pytest.fail("there is no server")

    async with asyncio.timeout(5), beside(keep_connected(settings(free_port()), never), "link"):
        await asyncio.sleep(0)
