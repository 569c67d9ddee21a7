"""A start that waits in memory, or had no subscriber, can be withdrawn; one on its way to the device cannot."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.connected_equipment import open_connected
from edge.equipment.mqtt import open_equipment
from edge.links.mqtt import open_session
from edge.station.equipment import Command, NotSent
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.test_connected_equipment import Plug
from tests.local_broker import open_broker


class Endless(Plug):
    """A device whose first command never ends; it is unplugged by an event."""

    async def perform(self, command: Command) -> Any:
        self.begun.append(command.command_id)
        await asyncio.Event().wait()


async def test_start_behind_another_is_withdrawn_also_after_the_connection(wait_until: WaitUntil) -> None:
    plug, station = Endless(), RecordingStation()
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        await equipment.send(NEXT)
        await wait_until(lambda: plug.begun)
        assert not equipment.withdraw(WORK.command_id)
        assert equipment.withdraw(NEXT.command_id)
        assert not equipment.withdraw(NEXT.command_id)
        assert plug.begun == [WORK.command_id]


async def test_start_without_a_connection_is_not_sent(wait_until: WaitUntil) -> None:
    plug = Plug()
    plug.attempts = -10_000_000
    connected = open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, Plug().connecting)
    async with connected as equipment:
        with pytest.raises(NotSent):
            await equipment.send(WORK)
        assert not equipment.withdraw(WORK.command_id)
        await wait_until(lambda: equipment.connected)


async def test_mqtt_start_without_subscriber_is_withdrawn(mqtt: MqttSettings, unique: str) -> None:
    settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique)
    async with open_session(mqtt, unique) as session:
        equipment = await open_equipment("plug", settings, session, RecordingStation(), SCOPES, "/edge")
        await equipment.send(WORK)
        assert str(equipment.problem)
        assert equipment.withdraw(WORK.command_id)
        assert not equipment.withdraw(WORK.command_id)


async def test_mqtt_start_that_a_subscriber_received_is_not_withdrawn(mqtt: MqttSettings, unique: str) -> None:
    settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique)
    async with open_session(mqtt, unique) as session, open_session(mqtt, f"{unique}-device") as device:
        await device.subscribe(f"{unique}/plug/commands", _ignore)
        equipment = await open_equipment("plug", settings, session, RecordingStation(), SCOPES, "/edge")
        await equipment.send(WORK)
        assert not equipment.withdraw(WORK.command_id)


@pytest.mark.parametrize("repetition", ["recognisable", "once"])
async def test_mqtt_start_without_a_broker_has_no_begun_mark(
    unique: str, repetition: str, wait_until: WaitUntil
) -> None:
    settings = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique, repetition=repetition)  # type: ignore[arg-type]
    station = RecordingStation()
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        equipment = await open_equipment("plug", settings, session, station, SCOPES, "/edge")
        await broker.stop()
        await wait_until(lambda: not session.connected)
        with pytest.raises(NotSent):
            await equipment.send(WORK)
        assert station.begun == []
        await broker.start()
        await wait_until(lambda: session.connected)
        async with open_session(MqttSettings(url=broker.url), f"{unique}-device") as device:
            received: list[object] = []

            async def receive(message: object) -> None:
                received.append(message)

            await device.subscribe(f"{unique}/plug/commands", receive)
            await equipment.send(replace(WORK))
            await wait_until(lambda: received)
        assert "offeredagain" not in received[0].user_properties  # type: ignore[attr-defined]


async def _ignore(_: object) -> None:
    """Receive a command and do nothing."""
