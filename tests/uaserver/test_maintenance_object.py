"""The maintenance mode for a client that browses, reads, subscribes and calls."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, ua

from edge.access.mode import SwitchOff, SwitchOn
from edge.foundation.errors import Refused
from edge.model.isa95 import ReturnStatus
from edge.model.plant import Maintenance, MaintenanceKind
from edge.model.user import Role
from edge.uaserver.namespaces import TYPES_URI
from edge.uaserver.server import UaServer
from edge.uaserver.view import MaintenanceView
from tests.opcua_client import patient_client
from tests.uaserver.running import Station, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT = 1_900_000_000_000
STATION = Station()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served(station=STATION, role=Role.ENGINEER) as running:
        yield running


def view(mode: Maintenance | None, *executing: str) -> MaintenanceView:
    def message(languages: Sequence[str]) -> str:
        return ("Umbau" if "de" in languages else "rebuilt") if mode else ""

    return MaintenanceView(mode, message, frozenset(executing))


async def place(client: Client) -> tuple[Node, int]:
    index = await client.get_namespace_index(TYPES_URI)
    return await client.nodes.objects.get_child([f"{index}:Gateway", f"{index}:Maintenance"]), index


def speaking(server: UaServer, *locales: str) -> Client:
    client = patient_client(server.endpoint)
    activate = client.uaclient.activate_session

    async def activate_with_locales(parameters: ua.ActivateSessionParameters) -> Any:
        parameters.LocaleIds = list(locales)
        return await activate(parameters)

    client.uaclient.activate_session = activate_with_locales
    return client


async def state(client: Client, scope: str, machine: str) -> tuple[str, int]:
    node = ua.NodeId(f"{scope}/MachineryBuildingBlocks/{machine}/CurrentState", 8)
    return (await client.get_node(node).read_value()).Text, (
        await client.get_node(ua.NodeId(f"{node.Identifier}/Id", 8)).read_value()
    ).Identifier


async def test_machines_and_server_show_the_maintenance_mode(server: UaServer) -> None:
    level, returns = ua.ObjectIds.Server_ServiceLevel, ua.ObjectIds.Server_EstimatedReturnTime
    async with patient_client(server.endpoint) as client:
        await server.maintenance.show(view(Maintenance(until=AT), "station-1"))
        assert await state(client, "station-1", "MachineryItemState") == ("Executing", 5006)
        assert await state(client, "station-2", "MachineryItemState") == ("OutOfService", 5004)
        assert await state(client, "station-1", "MachineryOperationMode") == ("Maintenance", 5025)
        assert await client.get_node(ua.NodeId(level)).read_value() == 0
        back = await client.get_node(ua.NodeId(returns)).read_value()
        assert back.replace(tzinfo=UTC) == datetime.fromtimestamp(AT / 1000, UTC)
        await server.maintenance.show(view(None))
        assert await state(client, "station-1", "MachineryItemState") == ("NotExecuting", 5007)
        assert await state(client, "station-1", "MachineryOperationMode") == ("Processing", 5026)
        assert await client.get_node(ua.NodeId(level)).read_value() == 255


@pytest.mark.parametrize(
    ("locales", "text", "locale"),
    [((), "rebuilt", None), (("de", "en"), "Umbau", "de"), (("x" * 99,), "rebuilt", "x" * 35)],
)
async def test_each_session_reads_the_message_in_its_language(
    server: UaServer, locales: tuple[str, ...], text: str, locale: str | None
) -> None:
    await server.maintenance.show(view(Maintenance(kind=MaintenanceKind.NOW, since=AT, by="anna")))
    async with speaking(server, *locales) as client:
        found, index = await place(client)
        message = await (await found.get_child(f"{index}:Message")).read_value()
        assert (message.Text, message.Locale) == (text, locale)
        values = [await (await found.get_child(f"{index}:{name}")).read_value() for name in ("On", "Kind", "By")]
        assert values == [True, 2, "anna"]
    await server.maintenance.show(view(None))


async def test_methods_reach_the_station_with_their_arguments(server: UaServer) -> None:
    STATION.switched.clear()
    until = ua.Variant(datetime.fromtimestamp(AT / 1000, UTC).replace(tzinfo=None), ua.VariantType.DateTime)
    async with patient_client(server.endpoint) as client:
        found, index = await place(client)
        assert await found.call_method(f"{index}:SwitchOn", True, "fire", until) == ReturnStatus.NO_ERROR
        assert await found.call_method(f"{index}:SwitchOff") == ReturnStatus.NO_ERROR
        with pytest.raises(ua.UaStatusCodeError, match="BadInvalidArgument"):
            await found.call_method(f"{index}:SwitchOn", 7, "fire", until)
        STATION.failure = Refused("invalid_payload", "the end has passed.")
        assert await _status(client, found, index) == ReturnStatus.INVALID_REQUEST
        STATION.failure = None
    assert STATION.switched == [SwitchOn("anonymous", MaintenanceKind.NOW, "fire", AT), SwitchOff()]


async def _status(client: Client, found: Node, index: int) -> int:
    method = await found.get_child(f"{index}:SwitchOff")
    request = ua.CallMethodRequest(ObjectId=found.nodeid, MethodId=method.nodeid, InputArguments=[])
    (result,) = await client.uaclient.call([request])
    status: int = result.OutputArguments[0].Value
    return status
