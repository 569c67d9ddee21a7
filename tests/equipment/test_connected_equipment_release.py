"""The tool of connected equipment is released after each command and at each connection, until it confirms that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.equipment.connected_equipment import ConnectedEquipment, open_connected
from edge.equipment.device import Device, DeviceEvent, DeviceEvents
from edge.foundation.errors import Refused, Unavailable
from edge.model.equipment_health import OpenSafing
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, Repetition
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation
from tests.virtual_time import run_virtual


class Lockable:
    """A device with a lock that declines rests after its first; `rests` are their times, `asked` all calls in order.

    `pulled` ends the connection.
    """

    problem = ""

    def __init__(self, declined: int = 0) -> None:
        self.asked: list[str] = []
        self.rests: list[float] = []
        self.declined = declined
        self.pulled = asyncio.Event()

    async def _events(self) -> DeviceEvents:
        await self.pulled.wait()
        self.pulled.clear()
        raise Unavailable("cable pulled")
        yield {}

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        yield self, self._events()

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Ignore the event."""

    async def settle(self, command: Command) -> None:
        """Keep nothing for a command."""

    async def stop(self, command: Command) -> None:
        """Return at once: no command runs for long."""

    async def catch_up(self) -> None:
        self.asked.append("catch up")

    async def perform(self, command: Command) -> Any:
        self.asked.append("perform")
        return {"done": True}

    async def rest(self) -> None:
        self.asked.append("rest")
        self.rests.append(asyncio.get_running_loop().time())
        if len(self.rests) > 1 and self.declined:
            self.declined -= 1
            raise Refused("device", "the tool is busy")

    async def wake(self) -> None:
        self.asked.append("wake")


def opened(device: Lockable, station: RecordingStation) -> AbstractAsyncContextManager[ConnectedEquipment]:
    return open_connected("wrench", "the line", (TYPE_ID,), station, SCOPES, device.connecting, Repetition.ONCE)


def test_release_declined_after_a_completed_action_is_retried_in_seconds() -> None:
    device, station = Lockable(declined=3), RecordingStation()

    async def released() -> list[OpenSafing | None]:
        open_safings = []
        async with opened(device, station) as equipment:
            await asyncio.sleep(1)
            await equipment.send(WORK)
            await asyncio.sleep(1)
            open_safings.append(equipment.open_release)
            await asyncio.sleep(60)
            open_safings.append(equipment.open_release)
        return open_safings

    with capture_logs():
        open_release, after = run_virtual(released())
    assert station.answers == [EquipmentAnswer(WORK.command_id, {"done": True})]
    assert open_release is not None
    assert (open_release.what, open_release.tries, open_release.reason) == ("release", 1, "the tool is busy")
    tries = device.rests[1:]
    assert [value - tries[0] for value in tries] == pytest.approx([0, 2, 7, 17])
    assert after is None


def test_open_release_is_the_first_act_on_a_new_connection() -> None:
    device, station = Lockable(declined=1), RecordingStation()

    async def reconnected() -> None:
        async with opened(device, station) as equipment:
            await asyncio.sleep(1)
            await equipment.send(WORK)
            await asyncio.sleep(1)
            before = equipment.open_release
            device.asked.clear()
            device.pulled.set()
            await asyncio.sleep(1)
            assert before is not None
            assert (device.asked, equipment.open_release) == (["rest", "catch up"], None)

    with capture_logs():
        run_virtual(reconnected())


def test_tool_of_a_begun_command_is_not_released_at_a_connection() -> None:
    device, station = Lockable(), RecordingStation()
    station.unanswered = [replace(WORK, begun=True)]

    async def connected() -> None:
        async with opened(device, station):
            await asyncio.sleep(1)

    run_virtual(connected())
    assert device.asked == ["catch up", "perform"]


def test_stop_without_an_answer_is_declined_and_keeps_the_connection() -> None:
    class Mute(Lockable):
        async def stop(self, command: Command) -> None:
            await asyncio.Event().wait()

    device, station = Mute(), RecordingStation()

    async def stopped() -> None:
        async with opened(device, station) as equipment:
            await asyncio.sleep(1)
            await equipment.stop(replace(WORK, phase=Phase.STOP))
            assert equipment.connection_count == 1

    run_virtual(stopped())
    assert (station.stops, station.unanswered_stops) == ([(WORK.command_id, "no answer within 15 s")], 1)


class SlowLockable(Lockable):
    """A device that declines each rest after `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_to_rest, self.answers = asyncio.Event(), asyncio.Event()

    async def rest(self) -> None:
        await super().rest()
        self.asked_to_rest.set()
        await self.answers.wait()
        raise Refused("device", "the tool is busy")


def test_equipment_ends_while_its_release_is_declined() -> None:
    """The cancellation was lost with the answer, and the end of the equipment waited for ever."""
    device, station = SlowLockable(), RecordingStation()

    async def end() -> None:
        async with asyncio.timeout(600), opened(device, station):
            await device.asked_to_rest.wait()
            device.answers.set()

    run_virtual(end())
    assert len(device.rests) == 1
