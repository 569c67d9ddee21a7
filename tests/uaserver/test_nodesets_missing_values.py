"""Values that the official node sets leave out are there, and those that they have are unchanged."""

from typing import Any

import pytest
from asyncua import Node, Server, ua

from edge.uaserver.namespaces import Namespace
from edge.uaserver.nodesets import fill_missing_values, register_official

ONLINE_ACCESS = ua.NodeId(6095, Namespace.DI)
METADATA = ua.NodeId(ua.ObjectIds.OPCUANamespaceMetadata)


async def _member(server: Server, name: str) -> Node:
    return await server.get_node(METADATA).get_child(f"0:{name}")


async def test_null_of_a_node_set_becomes_the_neutral_value() -> None:
    server = Server()
    await server.init()
    await register_official(server)
    topology = await server.nodes.objects.add_object(ua.NodeId(1, Namespace.DI), "DeviceTopology")
    online = await topology.add_variable(ONLINE_ACCESS, "OnlineAccess", None, datatype=ua.NodeId(1))
    uri = await (await _member(server, "NamespaceUri")).read_value()
    fill_missing_values(server.iserver.aspace)
    assert await online.read_value() is False
    expected: list[tuple[str, Any]] = [
        ("StaticStringNodeIdPattern", ""),
        ("DefaultRolePermissions", []),
        ("DefaultUserRolePermissions", []),
        ("DefaultAccessRestrictions", 0),
        ("NamespaceUri", uri),
    ]
    assert [(name, await (await _member(server, name)).read_value()) for name, _ in expected] == expected


@pytest.mark.parametrize("value", [True, False])
async def test_value_of_a_node_set_stays(*, value: bool) -> None:
    server = Server()
    await server.init()
    await register_official(server)
    online = await server.nodes.objects.add_variable(ONLINE_ACCESS, "OnlineAccess", value)
    fill_missing_values(server.iserver.aspace)
    assert await online.read_value() is value
