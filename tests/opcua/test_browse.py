"""A session resolves paths in any address space, or reports that there is no path."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Node, Server, ua

from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, TypeName, open_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

URI = "urn:vendor"
TOOL = TypeName(URI, 5000)


class Vendor:
    """A server controlled by the tests; each test has its own folder in it."""

    def __init__(self, server: Server, index: int) -> None:
        self.server = server
        self.index = index
        self.url = f"opc.tcp://127.0.0.1:{server.bserver.port}"

    async def refer(self, one: Node, kind: int, other: Node, *, forward: bool = True) -> None:
        """Add a reference between two nodes, without the checks of asyncua."""
        target = ua.ReferenceDescription(
            ReferenceTypeId=ua.NodeId(kind),
            IsForward=forward,
            NodeId=other.nodeid,
            BrowseName=await other.read_browse_name(),
            NodeClass=await other.read_node_class(),
            TypeDefinition=await other.read_type_definition() or ua.NodeId(),
        )
        self.server.iserver.aspace[one.nodeid].references.append(target)

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[Any]:
        folder = await self.server.nodes.objects.add_folder(self.index, "Plant")
        try:
            yield folder
        finally:
            # Nodes with circular references cannot be deleted, so only the reference to the folder is removed.
            objects = self.server.iserver.aspace[ua.NodeId(ua.ObjectIds.ObjectsFolder)]
            objects.references = [reference for reference in objects.references if reference.NodeId != folder.nodeid]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendor() -> AsyncIterator[Vendor]:
    server = Server()
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    index = await server.register_namespace(URI)
    await server.nodes.base_object_type.add_object_type(ua.NodeId(TOOL.number, index), f"{index}:ToolType")
    async with server:
        yield Vendor(server, index)


@pytest_asyncio.fixture(loop_scope="module")
async def session(vendor: Vendor) -> AsyncIterator[ClientSession]:
    async with open_client(vendor.url) as opened:
        yield opened


async def test_objects_with_circular_references_are_browsed_once(vendor: Vendor, session: ClientSession) -> None:
    async with vendor.folder() as folder:
        below = await folder.add_folder(vendor.index, "Below")
        await vendor.refer(below, ua.ObjectIds.Organizes, folder)
        await vendor.refer(folder, ua.ObjectIds.Organizes, folder)
        tool = await below.add_object(vendor.index, "Tool", objecttype=ua.NodeId(TOOL.number, vendor.index))
        await vendor.refer(folder, ua.ObjectIds.HasComponent, tool)
        nodes = await session.instances(TOOL)
    assert [node.id for node in nodes] == [tool.nodeid.to_string()]


async def test_types_derived_from_each_other_do_not_end_the_search(vendor: Vendor, session: ClientSession) -> None:
    one = await vendor.server.nodes.base_object_type.add_object_type(vendor.index, "One")
    two = await one.add_object_type(vendor.index, "Two")
    async with vendor.folder() as folder:
        await folder.add_object(vendor.index, "Odd", objecttype=two.nodeid)
        vendor.server.iserver.aspace[one.nodeid].references.clear()
        await vendor.refer(one, ua.ObjectIds.HasSubtype, two, forward=False)
        tool = await folder.add_object(vendor.index, "Tool", objecttype=ua.NodeId(TOOL.number, vendor.index))
        assert [instance.id for instance in await session.instances(TOOL)] == [tool.nodeid.to_string()]
    assert not await session.is_a(two.nodeid.to_string(), TOOL)


async def test_more_objects_than_the_limit_are_refused(vendor: Vendor, session: ClientSession) -> None:
    async with vendor.folder() as folder:
        for number in range(60):
            await folder.add_object(vendor.index, f"Part{number}")
        with pytest.raises(Refused, match="has more than 50 objects to look at"):
            await session.instances(TOOL, most=50)


async def test_server_with_one_operation_per_request_gets_single_requests(
    vendor: Vendor, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    browse = vendor.server.iserver.view_service.browse
    asked: list[int] = []

    def strict(parameters: ua.BrowseParameters) -> Any:
        asked.append(len(parameters.NodesToBrowse))
        if len(parameters.NodesToBrowse) > 1:
            raise ua.uaerrors.BadTooManyOperations
        return browse(parameters)

    async with vendor.folder() as folder:
        below = await folder.add_folder(vendor.index, "Cell")
        await folder.add_folder(vendor.index, "Store")
        tool = await below.add_object(vendor.index, "Tool", objecttype=ua.NodeId(TOOL.number, vendor.index))
        monkeypatch.setattr(vendor.server.iserver.view_service, "browse", strict)
        assert [instance.id for instance in await session.instances(TOOL)] == [tool.nodeid.to_string()]
    assert max(asked) > 1


async def test_node_with_endless_children_is_refused(
    vendor: Vendor, session: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = ua.ReferenceDescription(
        NodeId=ua.ExpandedNodeId(1, vendor.index), BrowseName=ua.QualifiedName("Part", vendor.index)
    )
    endless = ua.BrowseResult(ContinuationPoint=b"more", References=[part] * 5000)
    session_of_server = type(vendor.server.iserver.isession)

    async def answer(*_: Any) -> list[ua.BrowseResult]:
        return [endless]

    monkeypatch.setattr(session_of_server, "browse", answer)
    monkeypatch.setattr(session_of_server, "browse_next", answer, raising=False)
    monkeypatch.setattr(type(session._client.uaclient.session), "browse_next", answer)  # noqa: SLF001 - asyncua's server has no BrowseNext
    with pytest.raises(Refused, match="has more than 20000 others below it"):
        await session.find("Plant")


async def seven(*_: Any) -> list[ua.Variant]:
    return [ua.Variant(7)]


async def test_method_with_too_few_arguments_is_refused(vendor: Vendor, session: ClientSession) -> None:
    async with vendor.folder() as folder:
        await folder.add_method(vendor.index, "EnableAsset", seven, [ua.VariantType.String], [])
        plant = await session.find("Plant")
        with pytest.raises(Refused, match="EnableAsset takes 1 arguments, not 2"):
            await session.call(plant, "EnableAsset", "", True)


async def test_replaced_method_is_found_at_the_next_call(vendor: Vendor, session: ClientSession) -> None:
    async with vendor.folder() as folder:
        before = await folder.add_method(vendor.index, "Answer", seven, [], [ua.VariantType.Int64])
        plant = await session.find("Plant")
        assert await session.call(plant, "Answer") == [7]
        await vendor.server.delete_nodes([before], recursive=True)
        await folder.add_method(ua.NodeId(4711, vendor.index), f"{vendor.index}:Answer", seven, [], [])
        with pytest.raises(Refused, match="Answer: Bad"):
            await session.call(plant, "Answer")
        assert await session.call(plant, "Answer") == [7]
