"""Tests of a running demo: its parts are active, and the end of a part is reported."""

import asyncio
import io
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from edge.config import MqttSettings
from edge.features.simulator.demo import Addresses, open_demo
from edge.features.simulator.demo_view import view_on
from edge.foundation.errors import Unavailable
from edge.links.mqtt import open_session
from edge.links.opcua import open_client

pytestmark = pytest.mark.slow


def processes_of(text: str) -> list[int]:
    """Return the processes with this text in their arguments."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and text.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


async def test_running_demo_serves_its_clients_until_a_part_ends() -> None:
    seen: list[Addresses] = []

    async def keep() -> None:
        async with open_demo(view_on(Console(file=io.StringIO()))) as addresses:
            seen.append(addresses)
            async with open_client(addresses.opcua) as client:
                await client.find("Machines", "station-1")
            async with open_session(MqttSettings(url=addresses.broker), "visitor"):
                pass
            (gateway,) = processes_of(f"{addresses.directory}/edge.toml")
            os.kill(gateway, signal.SIGKILL)
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="the gateway was ended by SIGKILL"):
        await keep()
    (addresses,) = seen
    assert not addresses.directory.exists()
    assert processes_of(str(addresses.directory)) == []
