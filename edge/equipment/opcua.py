"""Equipment that is an OPC UA server: the common part of all its kinds."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from edge.config import OpcuaEquipmentSettings, Settings
from edge.equipment.connected_equipment import ConnectedEquipment, open_connected
from edge.equipment.device import Device, DeviceEvents
from edge.equipment.ping import PingResult
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, Node, TypeName, open_client
from edge.links.opcua_requests import RequestListener
from edge.model.equipment_traffic import TrafficKind
from edge.station.equipment import Repetition, StationPort

REQUEST_SECONDS = 30.0
"""Timeout of one request: a method of a device may take that long."""

OpenSession = Callable[[OpcuaEquipmentSettings, RequestListener], AbstractAsyncContextManager[ClientSession]]
"""Opens a session with the server that the settings name; raises as `open_client`."""

DeviceOpener = Callable[[ClientSession], AbstractAsyncContextManager[tuple[Device, DeviceEvents]]]
"""Finds the device on a new session and subscribes; yields the device with its events."""


def open_session(
    settings: OpcuaEquipmentSettings, on_request: RequestListener
) -> AbstractAsyncContextManager[ClientSession]:
    """Open a session whose request timeout is the longest duration of a method, `REQUEST_SECONDS`."""
    return open_client(settings.url, settings=settings, request_timeout=REQUEST_SECONDS, on_request=on_request)


def open_opcua_equipment(
    name: str,
    settings: OpcuaEquipmentSettings,
    station: StationPort,
    scopes: Collection[str],
    session_factory: OpenSession,
    open_device: DeviceOpener,
    repetition: Repetition = Repetition.REPEATABLE,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to the equipment for the length of the block, and reconnect while the server is unavailable.

    `open_device` finds its nodes and subscribes again on each session: a restarted server may have other namespace
    indexes, other nodes and no subscriptions.
    """
    on_request = partial(station.report_traffic, TrafficKind.ASKED)

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        async with session_factory(settings, on_request) as session, open_device(session) as opened:
            yield opened

    return open_connected(name, settings.url, settings.type_ids, station, scopes, connect, repetition)


async def find_single_instance(session: ClientSession, of: TypeName, what: Text) -> Node:
    """Return the only object of a type on a server. Raises Refused(`unknown_node`) when there is none, or several."""
    systems = await session.instances(of)
    if len(systems) != 1:
        found = ", ".join(system.path for system in systems) or Text.of("none")
        raise Refused(
            "unknown_node",
            Text.of("{url} should have one {what}, and has {found}", url=session.url, what=what, found=found),
        )
    return systems[0]


async def readable_events(
    device_events: DeviceEvents, note_skipped: Callable[[Refused], Awaitable[None]]
) -> DeviceEvents:
    """Yield the events of a device; pass those that are too large or unreadable to `note_skipped`."""
    async for device_event in device_events:
        if isinstance(device_event, Refused) and device_event.kind in {"too_large", "unreadable"}:
            await note_skipped(device_event)
        else:
            yield device_event


async def ping(_name: str, section: OpcuaEquipmentSettings, _settings: Settings) -> PingResult:
    """Read the clock of the server on a session of its own."""
    async with open_client(section.url, settings=section) as session:
        clock = await session.find("Server", "ServerStatus", "CurrentTime")
        began = time.perf_counter()
        time_read = await session.read(clock)
        return PingResult(answers=True, detail=f"its clock reads {time_read}", seconds=time.perf_counter() - began)
