"""An OPC UA client sees the cycles of a flow, and starts and stops it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from asyncua import Client, Node, ua

from tests.free_ports import free_port
from tests.opcua_client import patient_client
from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant

pytestmark = pytest.mark.slow

DEADLINE_S = 60.0


def test_client_follows_starts_and_stops_a_flow(tmp_path: Path) -> None:
    port = free_port()
    with open_flow_plant(tmp_path) as plant:
        plant.opcua = (
            f'endpoint = "opc.tcp://127.0.0.1:{port}"\nsecurity = "none"\nanonymous = "operator"\n'
            f'pki = "{tmp_path}/pki"\n'
        )
        plant.start("edge")
        plant.put(chain("tick/1", node("v", "constant", value=1), node("w", "delay", seconds=0.1), interval_seconds=1))
        asyncio.run(_follow(plant, f"opc.tcp://127.0.0.1:{port}"))


async def _follow(plant: FlowPlant, endpoint: str) -> None:
    async with patient_client(endpoint) as client:
        flow = await _until(lambda: _flow(client, "tick/1"))
        members = {(await child.read_browse_name()).Name: child for child in await flow.get_children()}

        async def value(name: str) -> Any:
            return await members[name].read_value()

        async def cycles(count: int) -> bool:
            return bool(await value("CyclesCompleted") >= count)

        await _until(lambda: cycles(2))
        assert await value("State") == 1, "running"
        assert 100 <= await value("LastCycleDuration") < 10_000
        await flow.call_method(members["Stop"], ua.Variant("night", ua.VariantType.String))
        assert [await value("State"), await value("Reason")] == [2, "night"]
        shown = await asyncio.to_thread(plant.edge, "show", "tick/1", "--json")
        assert json.loads(shown)["flow"]["reason"] == "night"
        before = await value("CyclesCompleted")
        await flow.call_method(members["Start"])
        await _until(lambda: cycles(before + 2))
        await asyncio.to_thread(plant.edge, "delete", "tick/1")

        async def is_gone() -> bool:
            return await _flow(client, "tick/1") is None

        await _until(is_gone)


async def _flow(client: Client, flow_id: str) -> Node | None:
    gateway = next(child for child in await client.nodes.objects.get_children() if child.nodeid.Identifier == "Gateway")
    for folder in await gateway.get_children():
        if (await folder.read_browse_name()).Name == "Flows":
            for value in await folder.get_children():
                if (await value.read_browse_name()).Name == flow_id:
                    return value
    return None


async def _until(condition: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(DEADLINE_S):
        while not (found := await condition()):  # noqa: ASYNC110 - a client can only look
            await asyncio.sleep(0.05)
        return found
