"""The endpoint of the server, its errors when it cannot listen, and what parts add to it."""

import asyncio
import socket
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from asyncua import Client, Node, ua

from edge.config import OpcuaSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.task_group import TaskGroup
from edge.model.user import Role
from edge.uaserver.gateway_object import GATEWAY_NAME
from edge.uaserver.methods import PartMethod, Services, Target
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import add_nodes, method_items, object_item
from edge.uaserver.parts import NewServer, ServerPart
from edge.uaserver.server import UaServer, open_server
from tests.opcua_client import patient_client
from tests.uaserver.running import KINDS, MACHINES, SETTINGS, Station, served

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def open_and_leave(settings: OpcuaSettings, tasks: TaskGroup) -> None:
    station = Station()
    services = Services(station, station, station.intervene, station.release, station.switch_mode)
    async with open_server(settings, "edge", MACHINES, services, tasks, kinds=KINDS):
        pass


async def test_endpoint_descriptions_contain_the_real_port(client: Client, server: UaServer) -> None:
    port = urlsplit(server.endpoint).port
    for endpoint in await client.get_endpoints():
        assert urlsplit(endpoint.EndpointUrl).port == port != 0
        assert endpoint.Server.ApplicationType == ua.ApplicationType.Server


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "0.0.0.0"), ("localhost", "127.0.0.1")])  # noqa: S104
async def test_server_listens_on_the_configured_host(host: str, shown: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, endpoint=f"opc.tcp://{host}:0")
    async with served(settings, MACHINES[:1]) as server:
        assert urlsplit(server.endpoint).hostname == shown


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid"])
async def test_error_names_a_host_that_is_not_local(host: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, endpoint=f"opc.tcp://{host}:0")
    async with TaskGroup() as tasks:
        with pytest.raises(Unavailable, match=f"opcua.endpoint: cannot listen on opc.tcp://{host}:0"):
            await open_and_leave(settings, tasks)


async def test_error_names_the_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = msgspec.structs.replace(SETTINGS, endpoint=f"opc.tcp://127.0.0.1:{port}")
        async with TaskGroup() as tasks:
            with pytest.raises(Unavailable, match=f"127.0.0.1:{port}: Address already in use"):
                await open_and_leave(settings, tasks)


async def test_missing_node_set_is_reported_with_advice(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, nodesets=str(tmp_path))
    async with TaskGroup() as tasks:
        with pytest.raises(SettingsError, match=r"Opc.Ua.Di.NodeSet2.xml is missing") as caught:
            await open_and_leave(settings, tasks)
    assert "make setup" in caught.value.advice


async def test_server_with_connected_clients_stops_at_once() -> None:
    now = asyncio.get_running_loop().time
    began = now()
    async with served(SETTINGS, MACHINES[:1]) as server:
        start_s = now() - began
        leaving = patient_client(server.endpoint)
        await leaving.connect()
        began = now()
    # The start is work that takes long: a machine that is busy delays it, too.
    assert now() - began < max(0.5, start_s)
    await leaving.disconnect()


async def test_stopped_server_leaves_no_running_tasks() -> None:
    before = asyncio.all_tasks()
    async with served(SETTINGS, MACHINES[:1]) as server:
        staying = patient_client(server.endpoint)
        await staying.connect()
        await staying.create_subscription(50, object())
    await asyncio.sleep(0)  # so that the tasks cancelled last can end
    left = [task.get_coro() for task in asyncio.all_tasks() - before]
    await staying.disconnect()
    assert [coro for coro in left if "asyncua/server" in coro.cr_code.co_filename] == []  # type: ignore[union-attr]


async def test_current_time_of_the_server_advances(client: Client) -> None:
    ticks: asyncio.Queue[datetime] = asyncio.Queue()

    class Listener:
        def datachange_notification(self, _node: Node, value: datetime, _data: object) -> None:
            ticks.put_nowait(value)

    subscription = await client.create_subscription(50, Listener())
    await subscription.subscribe_data_change(client.get_node(ua.ObjectIds.Server_ServerStatus_CurrentTime))
    async with asyncio.timeout(60):
        assert await ticks.get() < await ticks.get()
    await subscription.delete()


async def test_part_adds_an_object_and_performs_its_method() -> None:
    place, start = ua.NodeId("Gateway/Lamp", Namespace.APPLICATION), ua.NodeId("Gateway/Lamp/Start", 1)
    called: list[str] = []

    async def switch_on() -> None:
        called.append("lamp")

    async def add(new: NewServer) -> ServerPart:
        folder = ua.NodeId(ua.ObjectIds.FolderType)
        add_nodes(new.core, [object_item(place, new.sources[GATEWAY_NAME], HAS_COMPONENT, folder)])
        add_nodes(new.core, method_items(start, place, "Switch it on.", (), ()))
        target = Target("", {start: "Start"}, part_methods={"Start": PartMethod((), switch_on)})
        return ServerPart({place: target}.get)

    async def add_nothing(_: NewServer) -> None: ...

    async with (
        served(machines=MACHINES[:1], role=Role.OPERATOR, parts=[add_nothing, add]) as server,
        patient_client(server.endpoint) as client,
    ):
        assert len(server.parts) == 1
        await client.get_node(place).call_method(start)
    assert called == ["lamp"]
