"""A gateway that runs flows takes the calls of sidecars for them, and refuses them without flows."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edge.app.wiring import open_gateway
from edge.config import FlowsSettings, MqttSettings, RedisSettings, RpcSettings, Settings
from edge.links.rpc import open_client
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, FLOW_METHOD_TYPE
from tests.app.running import NO_OPCUA
from tests.features.flows.documents import flow, node

PUT = CONFIG_TYPE.format("flow")
MEAN = flow([node("a", "constant", value=[1, 3]), node("mean", "aggregate", of="mean")], "a>mean", interval_seconds=0)


@pytest.fixture
async def socket() -> AsyncIterator[str]:
    """An address that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        yield f"unix://{directory}/rpc.sock"


def settings(redis: RedisSettings, socket: str, directory: Path, run: Any) -> Settings:
    flows = FlowsSettings(run=run, directory=str(directory))
    rpc = RpcSettings(listen=socket)
    return Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, flows=flows, rpc=rpc)


async def test_flow_registered_by_a_sidecar_runs(redis: RedisSettings, socket: str, tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        open_gateway(settings(redis, socket, tmp_path, "on")),
        open_client(socket) as client,
    ):
        put = await client.publish(CloudEvent(id="1", source="/sidecar", type=PUT, data=MEAN))
        assert put.mdcserrorkind is None
        start = CloudEvent(id="2", source="/sidecar", type=FLOW_METHOD_TYPE.format("Start"), data={"FlowID": "flow"})
        assert (await client.publish(start)).mdcserrorkind is None
        number = 3
        while True:
            read = CloudEvent(id=str(number), source="/sidecar", type=PUT, extensions={"method": "GET"})
            answer = await client.publish(read)
            assert isinstance(answer.data, list)
            if answer.data[0]["status"] == "completed":
                break
            number += 1
        assert answer.data[0]["cycle"]["nodes"]["mean"]["output"] == 2.0


async def test_gateway_without_flows_refuses_flow_calls(redis: RedisSettings, socket: str, tmp_path: Path) -> None:
    async with open_gateway(settings(redis, socket, tmp_path, "off")), open_client(socket) as client:
        answer = await client.publish(CloudEvent(id="1", source="/sidecar", type=PUT, data=MEAN))
        assert answer.mdcserrorkind == "unknown_type"
