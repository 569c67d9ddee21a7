"""Peers on the npm packages of Sparkplug: a host application, and a codec."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
DEADLINE_S = 60
REBIRTH = {"timestamp": 1, "metrics": [{"name": "Node Control/Rebirth", "type": "Boolean", "value": True}]}


class Host:
    """A host application in a process of its own; `messages` are those that it received."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.messages: list[dict[str, Any]] = []
        self._process = process
        self._came = asyncio.Condition()

    async def listen(self) -> None:
        """Read what it receives until it ends."""
        assert self._process.stdout
        async for line in self._process.stdout:
            async with self._came:
                self.messages.append(json.loads(line))
                self._came.notify_all()

    def of(self, kind: str, device: str = "", since: int = 0) -> list[dict[str, Any]]:
        """Return the messages of a kind from a position on, as NBIRTH; those of a device when it is named."""
        found = (message for message in self.messages[since:] if message.get("topic", "").split("/")[2:3] == [kind])
        return [entry for entry in found if not device or entry["topic"].endswith(f"/{device}")]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition about the messages holds; return its result."""
        async with asyncio.timeout(DEADLINE_S), self._came:
            while not (result := condition()):
                await self._came.wait()
        return result

    def send(self, topic: str, **message: Any) -> None:
        """Publish a payload, or a body as text."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"topic": topic, **message}).encode() + b"\n")

    def state(self, host: str, timestamp: int, *, online: bool) -> None:
        """Publish the state of a host."""
        body = json.dumps({"online": online, "timestamp": timestamp})
        self.send(f"spBv1.0/STATE/{host}", body=body, qos=1, retain=True)


@asynccontextmanager
async def running(script: str, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a script with the installed packages."""
    installed = ROOT / ".node" / "node_modules"
    assert (installed / "sparkplug-payload").is_dir(), "run make setup: it installs sparkplug-payload"
    process = await asyncio.create_subprocess_exec(
        "node",
        ROOT / "tests" / "features" / "sparkplug" / script,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(installed)},
        limit=1 << 26,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def open_host(port: int, group: str) -> AsyncIterator[Host]:
    """Open a host that receives the messages of a group, and states of hosts, from the broker on this port."""
    async with running("host.js", str(port), group) as process:
        host = Host(process)
        task = asyncio.create_task(host.listen())
        try:
            await host.until(lambda: any("ready" in message for message in host.messages))
            yield host
        finally:
            task.cancel()


def metrics_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of a message by their names."""
    return {metric["name"]: metric for metric in message["payload"]["metrics"]}


class Codec:
    """The codec of sparkplug-payload."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def call(self, **request: Any) -> Any:
        """Decode or encode."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            return json.loads(await self._process.stdout.readline())
