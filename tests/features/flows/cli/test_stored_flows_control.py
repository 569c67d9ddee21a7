"""`edge flows` registers, starts, shows, stops and deletes flows while a gateway runs them."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from edge.features.flows.redis_state import RedisFlowState
from edge.store.client import Store
from tests.cli.calling import Edge, Offline
from tests.features.flows.documents import flow, node, nodes_of
from tests.features.flows.gateways import CHAIN, FakeOutside, Plant

BROKEN = flow([node("a", "nothing")], cron="x")


@pytest.fixture
def plant(store: Store) -> Plant:
    """Gateways on the store of the test."""
    return Plant(RedisFlowState(store))


def shown(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def write(folder: Path, document: dict[str, Any]) -> Path:
    file = folder / "flow.json"
    file.write_text(json.dumps(document))
    return file


async def test_flow_runs_from_put_to_delete(edge: Edge, plant: Plant, tmp_path: Path) -> None:
    file = write(tmp_path, CHAIN)
    assert "no flows; register one with `edge flows put" in (await edge("flows", "list")).stdout
    assert (await edge("flows", "put", file)).stdout == "flow: registered\n"
    assert shown(await edge("flows", "list", "--json"))[0]["status"] == "registered"
    async with plant.gateway():
        assert (await edge("flows", "start", "flow")).stdout == "flow: running\n"
        result = await edge("flows", "watch", "flow", "--cycles", 1)
        assert "[####################] 3/3 completed" in result.stdout
    status = shown(await edge("flows", "show", "flow", "--json"))
    assert nodes_of(status["cycle"])["double"]["output"] == 42
    assert status["cycle"]["statistics"]["completed"] == 3
    text = (await edge("flows", "show", "flow")).stdout
    assert "cycle 0 at" in text
    assert "3 nodes: 3 completed" in text
    assert (await edge("flows", "list")).stdout == "flow  completed   1 completed, 0 missed\n"
    assert (await edge("flows", "delete", "flow")).stdout == "flow: deleted\n"
    assert shown(await edge("flows", "list", "--json")) == []


async def test_flow_with_faults_is_not_registered(edge: Edge, tmp_path: Path) -> None:
    result = await edge("flows", "put", write(tmp_path, BROKEN))
    assert result.exit_code == 2
    assert "2 faults" in result.stdout
    assert shown(await edge("flows", "list", "--json")) == []


async def test_node_is_terminated_by_hand(edge: Edge, plant: Plant, outside: FakeOutside, tmp_path: Path) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await edge("flows", "put", write(tmp_path, CHAIN), "--start")
        await plant.at("read")
        result = await edge("flows", "terminate", "flow", "--node", "read", "--reason", "wrong tag")
        assert result.stdout == "flow: cycle 0 terminated\n"
    nodes = nodes_of(shown(await edge("flows", "show", "flow", "--json"))["cycle"])
    assert (nodes["read"]["status"], nodes["read"]["reason"]) == ("terminated", "wrong tag")


async def test_component_is_stopped_in_mid_cycle(
    edge: Edge, plant: Plant, outside: FakeOutside, tmp_path: Path
) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await edge("flows", "put", write(tmp_path, CHAIN), "--start")
        await plant.at("read")
        assert (await edge("flows", "stop", "flow", "--component", 0)).exit_code == 0
        outside.release()
        await plant.ended()
    nodes = nodes_of(shown(await edge("flows", "show", "flow", "--json"))["cycle"])
    assert nodes["send"]["reason"] == "component_stopped"


@pytest.mark.parametrize("options", [(), ("--cycle",), ("--component", "0")])
async def test_running_cycle_is_terminated(
    edge: Edge, plant: Plant, outside: FakeOutside, tmp_path: Path, options: tuple[str, ...]
) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await edge("flows", "put", write(tmp_path, {**CHAIN, "interval_seconds": 0.05}), "--start")
        await plant.at("read")
        assert (await edge("flows", "terminate", "flow", *options)).exit_code == 0
        status = shown(await edge("flows", "show", "flow", "--cycle", 0, "--json"))
    assert status["cycle"]["status"] == "terminated"
    assert status["flow"]["status"] == ("running" if options else "stopped")


async def test_stopped_flow_shows_the_reason(edge: Edge, tmp_path: Path) -> None:
    await edge("flows", "put", write(tmp_path, CHAIN), "--start")
    assert (await edge("flows", "stop", "flow", "--reason", "night")).stdout == "flow: stopped\n"
    text = (await edge("flows", "show", "flow")).stdout
    assert text.startswith("flow: stopped (night)\n")
    assert text.endswith("\nno cycle\n")
    assert (await edge("flows", "terminate", "flow")).stdout == "flow: stopped\n"


@pytest.mark.parametrize("command", [["start"], ["stop"], ["terminate"], ["delete"], ["show"], ["watch"]])
async def test_unknown_flow_ends_with_status_1(edge: Edge, command: list[str]) -> None:
    result = await edge("flows", *command, "nothing")
    assert result.exit_code == 1
    assert "there is no flow 'nothing'" in result.stderr


def test_arguments_are_checked_before_the_store_is_opened(offline: Offline) -> None:
    result = offline("flows", "terminate", "flow", "--cycle", "--node", "a")
    assert (result.exit_code, "use one of" in result.output) == (2, True)
