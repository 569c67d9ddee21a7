"""A client on another stack (node-opcua) that sends single requests of any service."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from edge.model.user import Role
from edge.uaserver.server import UaServer
from tests.uaserver.running import MACHINES, served

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60

VALUE = 13  # AttributeId
BOTH = 2  # TimestampsToReturn


def node(text: str) -> dict[str, str]:
    """Return the NodeId of a text for a request."""
    return {"$": "NodeId", "text": text}


def value_of(text: str, **others: Any) -> dict[str, Any]:
    """Return the ReadValueId of the value of a node."""
    return {"nodeId": node(text), "attributeId": VALUE, **others}


class Faulted(Exception):
    """The server answered with a ServiceFault; the message is its status."""


class OtherStack:
    """The client on the other stack, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def send(self, name: str, **parameters: Any) -> Any:
        """Send a request and return the response. Raises Faulted."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([name, parameters]).encode() + b"\n")
        return await self.answer()

    async def answer(self) -> Any:
        """Return the next answer of the process."""
        assert self._process.stdout
        async with asyncio.timeout(DEADLINE_S):
            line = json.loads(await self._process.stdout.readline())
        if "fault" in line:
            raise Faulted(line["fault"])
        assert "ok" in line, line
        return line["ok"]

    async def read(self, *nodes: dict[str, Any], at: int = 0, timestamps: int = BOTH) -> list[dict[str, Any]]:
        """Read attributes."""
        response = await self.send("Read", at=at, timestampsToReturn=timestamps, nodesToRead=nodes)
        results: list[dict[str, Any]] = response["results"]
        return results

    async def values(self, *nodes: str, at: int = 0) -> list[Any]:
        """Read values; each must have the status Good."""
        results = await self.read(*map(value_of, nodes), at=at)
        assert [result["statusCode"] for result in results] == ["Good"] * len(nodes)
        return [result["value"]["value"] for result in results]

    async def subscription(self, at: int = 0, **others: Any) -> int:
        """Create a subscription with a publishing interval of 50 ms; return its id."""
        wanted = {
            "requestedPublishingInterval": 50,
            "requestedLifetimeCount": 10_000,
            "requestedMaxKeepAliveCount": 10,
            "publishingEnabled": True,
        }
        response = await self.send("CreateSubscription", at=at, **(wanted | others))
        return int(response["subscriptionId"])

    async def monitor(self, subscription: int, *items: dict[str, Any], **others: Any) -> list[dict[str, Any]]:
        """Create monitored items; the handle of each is its position in the arguments."""
        wanted = [_item(handle, item) for handle, item in enumerate(items)]
        request = {"subscriptionId": subscription, "timestampsToReturn": BOTH, "itemsToCreate": wanted} | others
        response = await self.send("CreateMonitoredItems", **request)
        results: list[dict[str, Any]] = response["results"]
        return results

    async def changes(self, count: int, at: int = 0) -> list[dict[str, Any]]:
        """Wait for value changes of all subscriptions and return them with their handles."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            for data in await self.send("notified", at=at, count=1):
                found += data.get("monitoredItems", ())
        return found


def _item(handle: int, item: dict[str, Any]) -> dict[str, Any]:
    parameters = {"clientHandle": handle, "samplingInterval": 50, "queueSize": 5, "discardOldest": True}
    mode = item.pop("mode", 2)
    parameters |= item.pop("parameters", {})
    return {"itemToMonitor": item, "monitoringMode": mode, "requestedParameters": parameters}


@contextlib.asynccontextmanager
async def other_stack(endpoint: str) -> AsyncIterator[OtherStack]:
    """Run a client with one session over a channel without encryption."""
    installed = ROOT / ".node" / "node_modules"
    assert installed.is_dir(), "run make setup: it installs node-opcua-client"
    process = await asyncio.create_subprocess_exec(
        "node",
        ROOT / "tests" / "uaserver" / "node" / "requests.js",
        endpoint,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "NODE_PATH": str(installed)},
        limit=1 << 26,
    )
    try:
        client = OtherStack(process)
        assert await client.answer() == "connected"
        yield client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def observed() -> AsyncIterator[UaServer]:
    """A server with one machine; anonymous clients have the role observer."""
    async with served(machines=MACHINES[:1], role=Role.OBSERVER) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(observed: UaServer) -> AsyncIterator[OtherStack]:
    """A client on another stack."""
    async with other_stack(observed.endpoint) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def subscription(other: OtherStack) -> AsyncIterator[int]:
    """A subscription of that client."""
    made = await other.subscription()
    yield made
    await other.send("DeleteSubscriptions", subscriptionIds=[made])
