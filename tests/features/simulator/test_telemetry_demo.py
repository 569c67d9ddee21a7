"""Tests of the running telemetry scene: its parts are active, and the end of a part is reported."""

import asyncio
import io
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from edge.config import MqttSettings
from edge.features.simulator.telemetry_demo import TelemetryAddresses, open_telemetry_demo
from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, open_session
from tests.features.simulator.test_demo import processes_of

pytestmark = pytest.mark.slow


async def test_running_scene_receives_samples_until_a_part_ends() -> None:
    seen: list[TelemetryAddresses] = []
    changes = asyncio.Queue[bytes]()

    async def take(message: Message) -> None:
        changes.put_nowait(message.payload)

    async def keep() -> None:
        async with open_telemetry_demo(Console(file=io.StringIO())) as addresses:
            seen.append(addresses)
            async with open_session(MqttSettings(url=addresses.broker), "visitor") as session:
                await session.subscribe("app/jobs/station-1/alarms", take)
                await session.send(Message(addresses.topic, b'{"celsius": 99}'))
                assert b'"raised"' in await changes.get()
            (gateway,) = processes_of(str(addresses.settings))
            os.kill(gateway, signal.SIGKILL)
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="the gateway was ended by SIGKILL"):
        await keep()
    (addresses,) = seen
    assert not Path(addresses.settings).parent.exists()
