"""Clients cannot change the address space; known defects of asyncua are checked, so that a fix is noticed."""

import inspect
from pathlib import Path

import pytest
import pytest_asyncio
from asyncua import Client, Server, ua
from asyncua.crypto.permission_rules import UserRole
from asyncua.server.internal_server import InternalServer

from edge.uaserver import nodesets
from edge.uaserver.namespaces import Namespace, application_uri, machines_uri
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.running import Space

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_COMMENT = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)


class TestReadOnly:
    async def test_writing_is_refused(self, client: Client, space: Space) -> None:
        for node in (await space.response_list(), client.get_node(ua.ObjectIds.Server_ServiceLevel)):
            before = await node.read_value()
            with pytest.raises(ua.uaerrors.BadUserAccessDenied):
                await node.write_value(await node.read_data_value())
            assert await node.read_value() == before

    async def test_adding_and_deleting_nodes_is_refused(self, client: Client, space: Space) -> None:
        machine = await space.machine()
        with pytest.raises(ua.uaerrors.BadUserAccessDenied):
            await machine.add_object(space.index[machines_uri("edge")], "intruder")
        with pytest.raises(ua.uaerrors.BadUserAccessDenied):
            await client.delete_nodes([machine])

    async def test_no_user_becomes_administrator_by_name(self, server: UaServer) -> None:
        admin = patient_client(server.endpoint)
        admin.set_user("admin")
        admin.set_password("secret")
        with pytest.raises((ua.UaError, ValueError)):
            await admin.connect()

    async def test_no_client_registers_another_server(self, client: Client) -> None:
        with pytest.raises(ua.uaerrors.BadServiceUnsupported):
            await client.uaclient.register_server(ua.RegisteredServer(ServerUri="urn:intruder"))
        assert [found.ApplicationUri for found in await client.find_servers()] == [application_uri("edge")]


class TestWhyWeDoItOurselves:
    """Defects of the current asyncua; when one of these tests fails, its workaround can be removed."""

    async def test_asyncua_accepts_any_password_for_admin(self) -> None:
        plain = InternalServer()
        assert plain.user_manager.get_user(plain, username="admin", password="whatever").role is UserRole.Admin

    async def test_asyncua_allows_every_client_to_register_servers(self) -> None:
        plain = InternalServer()
        plain.register_server(ua.RegisteredServer(ServerUri="urn:intruder", ServerNames=[ua.LocalizedText("x")]))
        assert "urn:intruder" in plain._known_servers  # noqa: SLF001 - it is not public

    async def test_asyncua_buffers_100_mib_for_one_message(self) -> None:
        assert Server().limits.max_message_size == 100 * 1024 * 1024

    async def test_asyncua_waits_for_its_clock_when_it_stops(self) -> None:
        assert "asyncio.sleep(1)" in inspect.getsource(InternalServer._set_current_time_loop)  # noqa: SLF001

    async def test_asyncua_cannot_import_nodes_before_their_parents(self, plain: Server, nodeset_package: Path) -> None:
        with pytest.raises(ua.uaerrors.BadParentNodeIdInvalid):
            await plain.import_xml(
                xmlstring=original(nodeset_package)[nodesets.NODESETS[0].file], auto_load_definitions=False
            )

    async def test_asyncua_drops_the_definition_of_an_option_set_on_byte(self, plain: Server) -> None:
        output_info = plain.get_node(ua.NodeId(3009, Namespace.JOBS))
        assert (await output_info.read_attribute(ua.AttributeIds.DataTypeDefinition)).Value.Value is None

    async def test_asyncua_drops_the_type_of_nested_declarations(self, plain: Server) -> None:
        declared = ua.NodeId(1003, Namespace.JOBS)
        made = await plain.nodes.objects.add_object(Namespace.APPLICATION, "JobManagement", objecttype=declared)
        control = await made.get_child([f"{Namespace.JOBS.value}:JobOrderControl"])
        assert await control.get_methods() == []


def original(wheel: Path) -> dict[str, bytes]:
    """Return the node sets as they are published, by file."""
    return nodesets._bundled(wheel)  # noqa: SLF001 - the gateway itself reads only prepared ones


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain(nodeset_package: Path) -> Server:
    """The unmodified server of asyncua, with namespace 0 and those of jobs."""
    server = Server()
    await server.init()
    await nodesets.register_official(server)
    published = original(nodeset_package)
    for nodeset in nodesets.NODESETS[3:]:
        await server.import_xml(xmlstring=published[nodeset.file], auto_load_definitions=False)
    return server
