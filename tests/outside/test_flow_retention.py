"""Stored data of flows expires by its retention and with the flow; the time of the store is virtual."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant
from tests.outside.servers import Clock, wait_for

HOUR = 3600
PREFIX = "microdcs-edge:"


@pytest.fixture
def clock(tmp_path: Path, shim: Path) -> Clock:
    """The clock of the store."""
    return Clock(shim, tmp_path / "clock")


@pytest.fixture
def plant(tmp_path: Path, clock: Clock) -> Iterator[FlowPlant]:
    """A gateway on a store with a clock of its own."""
    with open_flow_plant(tmp_path, clock) as flow_plant:
        flow_plant.flows = "kept_mb = 1\n"
        flow_plant.start("edge")
        yield flow_plant


def keys(plant: FlowPlant) -> set[str]:
    """Return the keys of flows, without the stream that announces changes of any flow."""
    found = {key.removeprefix(PREFIX) for key in plant.store.cli("--scan").split("\n")}
    return {key for key in found if key.startswith(("flow", "node_"))} - {"flows:signals"}


@pytest.mark.slow
def test_tasks_are_kept_a_day_and_cycles_a_week(plant: FlowPlant, clock: Clock) -> None:
    before = keys(plant)
    large = "v" * 70_000
    plant.put(
        chain("order", node("values", "constant", value=large), node("last", "delay", seconds=0), interval_seconds=0)
    )
    plant.wait_for("order", 0, "last", "completed")
    wait_for(lambda: not plant.store.cli("smembers", f"{PREFIX}flows:running"), "the cycle has ended")
    plant.gateways["edge"].stop()
    cycle, flow = "flow:order:cycle:0", {"flow:order", "flows:schedule"}
    tasks = {f"node_tasks:order_0_{name}" for name in ("values", "values:output", "last", "last:output")}
    assert keys(plant) - before == {cycle, *flow, *tasks}
    clock.set(23 * HOUR)
    assert keys(plant) - before == {cycle, *flow, *tasks}
    clock.set(25 * HOUR)
    wait_for(lambda: keys(plant) - before == {cycle, *flow}, "the node tasks have expired")
    clock.set(6.9 * 24 * HOUR)
    assert keys(plant) - before == {cycle, *flow}
    clock.set(7.1 * 24 * HOUR)
    wait_for(lambda: keys(plant) - before == flow, "the cycle has expired")
    plant.edge("delete", "order")
    assert keys(plant) == before


@pytest.mark.slow
def test_oldest_cycles_of_a_flow_go_beyond_its_memory(plant: FlowPlant) -> None:
    """`kept_mb` is 1, and a cycle has an output of 300 KB."""
    before = keys(plant)
    plant.put(chain("full", node("values", "constant", value="v" * 300_000), interval_seconds=1))
    plant.wait_for("full", 7, "values", "completed")
    numbers = {int(key.rpartition(":")[2]) for key in keys(plant) - before if key.startswith("flow:full:cycle:")}
    assert 2 <= len(numbers) <= 4
    assert min(numbers) > 3
    assert not plant.task("full", 0, "values")
    plant.edge("delete", "full")
    assert keys(plant) == before
