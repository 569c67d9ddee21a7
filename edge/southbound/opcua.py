"""Equipment that is an OPC UA server: what each kind of it has in common."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from edge.config import OpcuaEquipmentSettings
from edge.links.background import beside
from edge.links.opcua import Session
from edge.links.opcua_link import keep_connected
from edge.southbound.connected import ConnectedEquipment, Device, Happening
from edge.station.equipment import Station

Opening = Callable[[Session], AbstractAsyncContextManager[tuple[Device, AsyncIterator[Happening]]]]
"""Finds the device on a new session and subscribes; gives the device with what happens there."""


@asynccontextmanager
async def open_opcua_equipment(
    name: str, settings: OpcuaEquipmentSettings, station: Station, scopes: Collection[str], opening: Opening
) -> AsyncIterator[ConnectedEquipment]:
    """Connect to the equipment for the length of the block; a server that is not there yet is waited for."""
    equipment = ConnectedEquipment(name, settings.url, settings.type_ids, station, scopes)

    async def work(session: Session) -> None:
        async with opening(session) as (device, happenings):
            await equipment.serve(device, happenings)

    async with beside(keep_connected(settings, work), f"equipment {name}"):
        yield equipment
