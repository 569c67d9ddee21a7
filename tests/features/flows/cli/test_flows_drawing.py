"""`edge flows draw` draws a file, or a flow of the store with the states of a cycle."""

from pathlib import Path

import pytest

from edge.features.flows.redis_state import RedisFlowState
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.features.flows.cli.test_stored_flows_control import BROKEN, write
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import CHAIN, Plant
from tests.features.flows.site_kinds import write_check


async def test_file_is_drawn(edge: Edge, tmp_path: Path) -> None:
    result = await edge("flows", "draw", write(tmp_path, CHAIN))
    assert result.exit_code == 0, result.output
    assert "┌" in result.stdout
    assert "double" in result.stdout


async def test_file_with_site_node_kinds_is_drawn(edge: Edge, tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    file = write(tmp_path, flow([node("a", "constant", value=[1, 2]), node("b", "site.check")], "a>b"))
    assert (await edge("flows", "draw", file)).exit_code == 2
    assert "site.check" in (await edge("flows", "draw", file, "--kinds", folder)).stdout


@pytest.mark.parametrize("name", ["flow.svg", "flow.txt"])
async def test_stored_flow_is_drawn_with_its_last_cycle(edge: Edge, store: Store, tmp_path: Path, name: str) -> None:
    plant = Plant(RedisFlowState(store))
    async with plant.gateway():
        await plant.run(CHAIN)
        await plant.ended()
    result = await edge("flows", "draw", "--flow", "flow", "-o", tmp_path / name)
    assert result.exit_code == 0, result.output
    text = (tmp_path / name).read_text()
    assert text.count("completed") >= 4
    assert text.startswith("<svg") == name.endswith(".svg")
    assert (await edge("flows", "draw", "--flow", "flow", "--cycle", 7)).exit_code == 1


async def test_replaced_flow_is_drawn_without_a_cycle(edge: Edge, store: Store) -> None:
    plant = Plant(RedisFlowState(store))
    async with plant.gateway():
        await plant.run(CHAIN)
        await plant.ended()
    await plant.service.put(flow([node("other", "constant", value=1)]))
    result = await edge("flows", "draw", "--flow", "flow")
    assert "other" in result.stdout
    assert "completed" not in result.stdout


async def test_faults_and_wrong_arguments_end_with_status_2(edge: Edge, tmp_path: Path) -> None:
    assert (await edge("flows", "draw", write(tmp_path, BROKEN))).exit_code == 2
    assert (await edge("flows", "draw")).exit_code == 2
    assert (await edge("flows", "draw", "--flow", "nothing")).exit_code == 1
    assert (await edge("flows", "draw", write(tmp_path, CHAIN), "-o", tmp_path / "no" / "x.svg")).exit_code == 1
