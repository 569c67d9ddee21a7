"""A step of the store's clock neither repeats nor skips more than one cycle of a flow; the clock is virtual."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.outside.flow_plant import FlowPlant, chain, node, open_flow_plant
from tests.outside.servers import Clock, wait_for

HOUR = 3600
MEASURED_EVERY_S = 10
"""Gateways measure the clock of the store."""

pytestmark = pytest.mark.long


@pytest.fixture
def clock(tmp_path: Path, shim: Path) -> Clock:
    """The clock of the store."""
    return Clock(shim, tmp_path / "clock")


@pytest.fixture
def plant(tmp_path: Path, clock: Clock) -> Iterator[FlowPlant]:
    """Two gateways on a store with a clock of its own."""
    with open_flow_plant(tmp_path, clock) as flow_plant:
        flow_plant.start("edge")
        flow_plant.start("other")
        yield flow_plant


def cycles(plant: FlowPlant) -> tuple[int, float, int]:
    """Return the number of the last cycle, when it was due in seconds, and how many were missed."""
    flow = json.loads(plant.edge("show", "tick", "--json"))["flow"]
    last_at = datetime.fromisoformat(flow["last_at"]).timestamp() if flow["last_at"] else 0
    return -1 if flow["last_cycle"] is None else flow["last_cycle"], last_at, flow["missed"]


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("catch_up", [False, True])
def test_flow_follows_a_step_of_the_clock(plant: FlowPlant, clock: Clock, seconds: int, *, catch_up: bool) -> None:
    plant.put(chain("tick", node("v", "constant", value=1), interval_seconds=2, catch_up=catch_up))
    wait_for(lambda: cycles(plant)[0] >= 1, "the flow runs")
    asked = time.monotonic()
    first, at, _ = cycles(plant)
    began = time.monotonic()
    clock.set(seconds)
    wait_for(lambda: abs(cycles(plant)[1] - at) > HOUR / 2, "the flow follows the clock", 6 * MEASURED_EVERY_S)
    # The other gateway has measured the clock by now too.
    wait_for(lambda: time.monotonic() - began > 1.5 * MEASURED_EVERY_S, "both have followed")
    least = (time.monotonic() - began) / 2
    last, _, missed = cycles(plant)
    most = (time.monotonic() - asked) / 2
    # One more or less by the step, and one at each end; a busy machine may miss some, the step would miss 1,800.
    assert least - 3 <= last - first + missed <= most + 3
    assert missed <= 10
