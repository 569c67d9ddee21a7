"""Run the gateway as people do: `edge run` in a process of its own, with a settings file."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from edge.config import MqttEquipmentSettings, MqttSettings, NorthboundSettings, OpcuaSettings, RedisSettings, Settings

WRENCH_TYPES = ("com.example.station.position.v1", "com.example.station.tighten.v1")
CAMERA_TYPES = ("com.example.station.qa_result.v1", "com.example.station.torque_result.v1")
STOPPED_WITHIN = 60.0
_LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a record with a traceback: nobody reads on after a longer line, and the gateway stands still."""


def settings_of(redis: RedisSettings, mqtt: MqttSettings, prefix: str, opcua: OpcuaSettings) -> Settings:
    """Return the settings of a gateway that shares broker and store with other tests."""
    mqtt = MqttSettings(url=mqtt.url, client_id=f"{prefix}-edge")
    return Settings(
        redis=redis,
        mqtt=mqtt,
        northbound=NorthboundSettings(topic_prefix=prefix),
        southbound={
            "wrench": MqttEquipmentSettings(type_ids=WRENCH_TYPES, topic_prefix=prefix),
            "camera": MqttEquipmentSettings(type_ids=CAMERA_TYPES, topic_prefix=prefix),
        },
        opcua=opcua,
    )


NO_OPCUA = OpcuaSettings(endpoint="")


def opcua_in(directory: Path) -> OpcuaSettings:
    """Return the settings of an OPC UA server on any free port, that lets every client of this host in to look."""
    return OpcuaSettings(
        endpoint="opc.tcp://127.0.0.1:0",
        security="none",
        users_file=str(directory / "users"),
        trusted=str(directory / "trusted"),
        pki=str(directory / "pki"),
    )


class Gateway:
    """A process of `edge run`; `log` is what it has said so far, line by line."""

    def __init__(self, process: Process) -> None:
        self.log: deque[str] = deque(maxlen=10_000)
        self._process = process
        self._printed = asyncio.Condition()

    async def listen(self) -> None:
        """Read what it says until it ends."""
        assert self._process.stderr
        async for line in self._process.stderr:
            async with self._printed:
                self.log.append(line.decode().rstrip())
                self._printed.notify_all()
        async with self._printed:
            self._printed.notify_all()

    async def until(self, event: str, deadline: float = 60.0) -> Mapping[str, Any]:
        """Wait until it logs an event; return the first such record."""
        async with asyncio.timeout(deadline), self._printed:
            while not (found := [record for record in self.records() if record["event"] == event]):
                assert self._process.stderr
                assert not self._process.stderr.at_eof(), f"it ended without {event!r}: {self.log}"
                await self._printed.wait()
        return found[0]

    def records(self) -> list[dict[str, Any]]:
        """Return what it has logged in JSON."""
        return [json.loads(line) for line in self.log if line.startswith("{")]

    def cpu_seconds(self) -> float:
        """Return the processor time that it has taken so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def ended(self, deadline: float = STOPPED_WITHIN) -> int:
        """Wait for its end; return its exit status."""
        async with asyncio.timeout(deadline):
            return await self._process.wait()

    async def stop(self) -> None:
        """Stop it by SIGTERM."""
        self.send(signal.SIGTERM)
        assert await self.ended() == 0, self.log


@asynccontextmanager
async def edge_run(*arguments: str | Path, module: str = "edge", **environment: str) -> AsyncIterator[Gateway]:
    """Start `edge run`, by a module that runs `edge`; whatever is left of it at the end is killed."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("EDGE_", "NOTIFY_", "WATCHDOG_"))
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, "run", *map(str, arguments)),
        env=clean | {"EDGE_LOGGING__FORMAT": "json"} | environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=PIPE,
        limit=_LONGEST_LINE,
    )
    gateway = Gateway(process)
    listening = asyncio.create_task(gateway.listen(), name="listen to edge run")
    try:
        yield gateway
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await listening


def written(settings: Settings, directory: Path) -> Path:
    """Write a settings file with what these settings say."""
    sections: dict[str, dict[str, object]] = {
        "gateway": {"name": settings.gateway.name},
        "redis": {"url": settings.redis.url, "prefix": settings.redis.prefix},
        "mqtt": {"url": settings.mqtt.url, "client_id": settings.mqtt.client_id},
        "northbound": {"topic_prefix": settings.northbound.topic_prefix},
        "opcua": {
            name: getattr(settings.opcua, name) for name in ("endpoint", "security", "users_file", "trusted", "pki")
        },
    }
    for name, equipment_settings in settings.southbound.items():
        sections[f"southbound.{name}"] = msgspec.structs.asdict(equipment_settings)
    lines = []
    for section, keys in sections.items():
        lines += [f"[{section}]", *(f"{key} = {toml(value)}" for key, value in keys.items())]
    file = directory / "edge.toml"
    file.write_text("\n".join(lines))
    return file


def toml(value: object) -> str:
    """Write a value; all but a table is the same in JSON."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(item)}' for key, item in value.items())} }}"
    return json.dumps(value)
