"""Tests of the presence of simulated equipment: online, offline and the last will."""

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL

from edge.config import MqttSettings
from edge.features.simulator.presence import announce_presence, last_will
from edge.links.mqtt import Message, open_session
from tests.conftest import WaitUntil
from tests.local_broker import open_broker

START = "import sys; from edge.features.simulator.cli.sim import sim; sim(sys.argv[1:])"


class Bystander:
    """A recorder of the messages on a presence topic."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def note(self, message: Message) -> None:
        self.heard.append(message.payload)


async def test_presence_is_published_once_at_start_and_end(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    bystander = Bystander()
    async with open_session(mqtt, f"{unique}-bystander") as ears:
        await ears.subscribe(f"{unique}/presence", bystander.note)
        async with open_session(mqtt, unique, will=last_will(unique)) as session, announce_presence(session, unique):
            await wait_until(lambda: bystander.heard)
        await wait_until(lambda: len(bystander.heard) == 2)
    assert bystander.heard == [b"online", b"offline"]
    async with open_session(mqtt, f"{unique}-later") as later:
        left = await later.read_retained(f"{unique}/presence", 60)
    assert left is not None
    assert (left.payload, left.retain) == (b"offline", True)


async def test_each_connection_publishes_presence_again(unique: str, wait_until: WaitUntil) -> None:
    bystander = Bystander()
    async with open_broker() as broker:
        mqtt = MqttSettings(url=broker.url)
        async with open_session(mqtt, unique) as session, announce_presence(session, unique):
            await broker.kill()
            await wait_until(lambda: not session.connected)
            broker.forget()
            await broker.start()
            async with open_session(mqtt, f"{unique}-bystander") as ears:
                await ears.subscribe(f"{unique}/presence", bystander.note)
                await wait_until(lambda: bystander.heard)
    assert set(bystander.heard) == {b"online"}


async def test_the_broker_reports_a_killed_device(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    bystander = Bystander()
    arguments = ("controller", "--url", mqtt.url, "--name", "wrench", "--prefix", unique)
    async with open_session(mqtt, f"{unique}-bystander") as ears:
        await ears.subscribe(f"{unique}/wrench/presence", bystander.note)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", START, *arguments, stdout=DEVNULL)
        try:
            await wait_until(lambda: bystander.heard)
        finally:
            process.send_signal(signal.SIGKILL)
            await process.wait()
        await wait_until(lambda: len(bystander.heard) == 2)
    assert bystander.heard == [b"online", b"offline"]
