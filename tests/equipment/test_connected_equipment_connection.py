"""The connection of equipment is a state: since when, and the reason of the last failure."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.equipment.connected_equipment import open_connected
from edge.equipment.device import Device, DeviceEvents
from edge.foundation.errors import Unavailable
from edge.links.connection_fault import ConnectionFailed
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from tests.conftest import WaitUntil
from tests.english import english
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.test_connected_equipment import Plug


async def test_reason_of_a_failed_connection_is_its_state(wait_until: WaitUntil) -> None:
    clock, reasons = iter(range(1000, 2000)), ["cannot connect: [Errno 111]", "no answer"]

    class Away(Plug):
        @asynccontextmanager
        async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
            self.attempts += 1
            if self.attempts > len(reasons):
                yield self, self._happen()
            raise Unavailable(reasons[self.attempts - 1]) from ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    plug, station = Away(), RecordingStation()
    connected = open_connected(
        "plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting, retry_s=(0.05, 0.1), clock=lambda: next(clock)
    )
    async with connected as equipment:
        assert equipment.connection == ConnectionState(connected=False)
        await wait_until(lambda: plug.attempts == 1)
        first = ConnectionState(connected=False, since=1000, fault="refused", reason=reasons[0], retry_s=0.1)
        assert english(equipment.connection) == first
        with pytest.raises(Unavailable, match="plug at the wall is not connected: cannot connect"):
            await equipment.send(WORK)
        await wait_until(lambda: plug.attempts == 2)
        assert english(equipment.connection) == replace(first, reason=reasons[1])
        await wait_until(lambda: equipment.connected)
        assert equipment.connection == ConnectionState(connected=True, since=1001)


async def test_lost_connection_has_its_reason(wait_until: WaitUntil) -> None:
    class Lost(Plug):
        async def _happen(self) -> DeviceEvents:
            if self.attempts == 2:
                await self.happenings.get()
                raise ConnectionFailed(ConnectionFault.SILENT, "the controller is silent for 15 s")
            yield await self.happenings.get()

        @asynccontextmanager
        async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
            if self.attempts == 2:
                await asyncio.Event().wait()
            async with super().connecting() as opened:
                yield opened

    plug = Lost()
    async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: equipment.connected)
        plug.happenings.put_nowait({})
        await wait_until(lambda: not equipment.connected)
    assert str(equipment.connection.text) == "not connected: silent: the controller is silent for 15 s"
