"""Commands to an OPC UA device wait for their turn and for the connection, which is opened again after a loss."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Server, ua

from edge.config import OpcuaEquipmentSettings
from edge.equipment.connected_equipment import ConnectedEquipment
from edge.equipment.device import Device, DeviceEvent, DeviceEvents
from edge.equipment.opcua import open_opcua_equipment, open_session
from edge.foundation.errors import Refused, Unavailable
from edge.links.opcua import ClientSession, EventField, TypeName
from edge.links.simulated_device import OpcuaDevice, open_device
from edge.station.equipment import Command, EquipmentAnswer
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation
from tests.free_ports import free_port

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


class Scripted:
    """A device that ends each command with the outcome that a test sets."""

    def __init__(self) -> None:
        self.begun: list[Command] = []
        self.stopped: list[Command] = []
        self.outcomes: asyncio.Queue[Any] = asyncio.Queue()

    @property
    def problem(self) -> str:
        return ""

    async def catch_up(self) -> None:
        """Return at once: there are no results."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Ignore the event."""

    async def perform(self, command: Command) -> Any:
        self.begun.append(command)
        outcome = await self.outcomes.get()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def stop(self, command: Command) -> None:
        self.stopped.append(command)

    async def settle(self, command: Command) -> None:
        """Return at once: nothing is kept."""

    @asynccontextmanager
    async def opening(self, session: ClientSession) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        async with session.watch(None, (), {}) as happenings:
            yield self, happenings


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[OpcuaDevice]:
    async with open_device("device", ()) as running:
        yield running


@asynccontextmanager
async def equipped(
    server: OpcuaDevice, station: RecordingStation, device: Scripted
) -> AsyncIterator[ConnectedEquipment]:
    settings = OpcuaEquipmentSettings(kind="vision", type_ids=(TYPE_ID,), url=server.url, security="none")
    async with open_opcua_equipment("device", settings, station, SCOPES, open_session, device.opening) as equipment:
        yield equipment


async def test_commands_are_refused_without_a_connection(server: OpcuaDevice) -> None:
    async with server.unplugged(), equipped(server, RecordingStation(), Scripted()) as equipment:
        for call in (equipment.send, equipment.stop):
            with pytest.raises(Unavailable, match="is not connected"):
                await call(WORK)


async def test_commands_are_executed_one_after_the_other(server: OpcuaDevice, wait_until: WaitUntil) -> None:
    station, device = RecordingStation(), Scripted()
    async with equipped(server, station, device) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        await equipment.send(NEXT)
        await wait_until(lambda: device.begun)
        device.outcomes.put_nowait({"torque": 85.2})
        await wait_until(lambda: len(device.begun) == 2)
        device.outcomes.put_nowait(Refused("device", "the spindle is jammed"))
        await wait_until(lambda: len(station.answers) == 2)
    assert station.answers == [
        EquipmentAnswer(WORK.command_id, {"torque": 85.2}),
        EquipmentAnswer(NEXT.command_id, error="the spindle is jammed"),
    ]


async def test_stop_of_a_waiting_command_reaches_the_device(server: OpcuaDevice, wait_until: WaitUntil) -> None:
    device = Scripted()
    async with equipped(server, RecordingStation(), device) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        await equipment.send(NEXT)
        await wait_until(lambda: device.begun)
        await equipment.stop(NEXT)
        await equipment.stop(WORK)
    assert (device.begun, device.stopped) == ([WORK], [NEXT, WORK])


async def test_command_without_an_answer_is_executed_at_the_start_of_the_gateway(
    server: OpcuaDevice, wait_until: WaitUntil
) -> None:
    station, device = RecordingStation(), Scripted()
    station.unanswered = [WORK]
    async with equipped(server, station, device):
        device.outcomes.put_nowait({})
        await wait_until(lambda: station.answers)
    assert device.begun == [WORK]


async def test_command_interrupted_by_a_lost_connection_is_repeated_on_the_next(
    server: OpcuaDevice, wait_until: WaitUntil
) -> None:
    station, device = RecordingStation(), Scripted()
    async with equipped(server, station, device) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        station.unanswered = [WORK]
        device.outcomes.put_nowait(Unavailable("the connection is lost"))
        device.outcomes.put_nowait({})
        await wait_until(lambda: station.answers)
    assert device.begun == [WORK, WORK]


NAMESPACE_URI = "urn:vendor:types"


@asynccontextmanager
async def vendor(port: int, namespaces: Sequence[str]) -> AsyncIterator[tuple[Server, int]]:
    """Run a server with a type of number 5000; the order of `namespaces` sets its namespace index."""
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


class Tool(Scripted):
    """A device that sends torques and is found by its type."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []
        self.torques: list[Any] = []

    async def handle_event(self, device_event: DeviceEvent) -> None:
        self.torques.extend([device_event["Torque"]] if device_event["Torque"] is not None else [])

    @asynccontextmanager
    async def opening(self, session: ClientSession) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        (tool,) = await session.instances(TypeName(NAMESPACE_URI, 5000))
        async with session.watch(None, [EventField(TypeName(NAMESPACE_URI, 5001), "Torque")], {}) as happenings:
            self.paths.append(tool.path)
            yield self, happenings


async def send_torque(server: Server, index: int, torque: float | ua.ExtensionObject) -> None:
    generator = await server.get_event_generator(ua.NodeId(5001, index))
    kind = ua.VariantType.Double if isinstance(torque, float) else ua.VariantType.ExtensionObject
    generator.event.add_property("Torque", torque, kind)
    await generator.trigger()


async def test_events_arrive_after_a_restart_with_other_namespace_indexes(wait_until: WaitUntil) -> None:
    port = free_port()
    url = f"opc.tcp://127.0.0.1:{port}"
    settings = OpcuaEquipmentSettings(kind="vision", type_ids=(TYPE_ID,), url=url, security="none")
    tool = Tool()
    async with open_opcua_equipment("tool", settings, RecordingStation(), SCOPES, open_session, tool.opening):
        async with vendor(port, ("urn:one", NAMESPACE_URI)) as (server, index):
            await wait_until(lambda: tool.paths)
            await send_torque(server, index, 1.5)
            await wait_until(lambda: tool.torques == [1.5])
        async with vendor(port, (NAMESPACE_URI, "urn:one")) as (server, index):
            await wait_until(lambda: len(tool.paths) == 2)
            await send_torque(server, index, 2.5)
            await wait_until(lambda: tool.torques == [1.5, 2.5])
    assert tool.paths == ["/0:Objects/3:Tool", "/0:Objects/2:Tool"]


async def test_event_that_cannot_be_decoded_is_discarded_and_the_next_handled(
    unused_tcp_port: int, wait_until: WaitUntil
) -> None:
    url = f"opc.tcp://127.0.0.1:{unused_tcp_port}"
    settings = OpcuaEquipmentSettings(kind="vision", type_ids=(TYPE_ID,), url=url, security="none")
    station, tool = RecordingStation(), Tool()
    unknown = ua.ExtensionObject(TypeId=ua.NodeId(4711, 1), Body=b"?")
    async with (
        vendor(unused_tcp_port, (NAMESPACE_URI,)) as (server, index),
        open_opcua_equipment("tool", settings, station, SCOPES, open_session, tool.opening),
    ):
        await wait_until(lambda: tool.paths)
        for torque in (unknown, unknown, 2.5):
            await send_torque(server, index, torque)
        await wait_until(lambda: tool.torques)
    assert (tool.torques, len(tool.paths)) == ([2.5], 1)
    assert [refused.kind for refused in station.refused] == ["unreadable", "unreadable"]


async def test_a_lost_connection_is_reported_in_one_line_without_a_traceback(
    server: OpcuaDevice, wait_until: WaitUntil, caplog: pytest.LogCaptureFixture
) -> None:
    async with equipped(server, RecordingStation(), Scripted()) as equipment:
        await wait_until(lambda: equipment.connected)
        async with server.unplugged():
            await wait_until(lambda: not equipment.connected)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("asyncua.client")] == []
