"""Values that the official node sets leave out are there, and those that they have are unchanged."""

from typing import Any

from asyncua import Node, Server, ua

from edge.uaserver.nodesets import fill_missing_values, register_official

METADATA = ua.NodeId(ua.ObjectIds.OPCUANamespaceMetadata)


async def _member(server: Server, name: str) -> Node:
    return await server.get_node(METADATA).get_child(f"0:{name}")


async def test_null_of_a_node_set_becomes_the_neutral_value() -> None:
    server = Server()
    await server.init()
    await register_official(server)
    uri = await (await _member(server, "NamespaceUri")).read_value()
    fill_missing_values(server.iserver.aspace)
    expected: list[tuple[str, Any]] = [
        ("StaticStringNodeIdPattern", ""),
        ("DefaultRolePermissions", []),
        ("DefaultUserRolePermissions", []),
        ("DefaultAccessRestrictions", 0),
        ("NamespaceUri", uri),
    ]
    assert [(name, await (await _member(server, name)).read_value()) for name, _ in expected] == expected


async def test_value_of_a_node_set_stays() -> None:
    server = Server()
    await server.init()
    await register_official(server)
    subset = await _member(server, "DefaultAccessRestrictions")
    await subset.write_value(ua.DataValue(ua.Variant(3, ua.VariantType.UInt16)))
    fill_missing_values(server.iserver.aspace)
    assert await subset.read_value() == 3
