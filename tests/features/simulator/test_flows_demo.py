"""The flows scene shows the results of its flows, draws the last one, and removes its files."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from edge.features.flows.plan import Plan, plan_flow
from edge.features.simulator.demo_parts import DemoPage
from edge.features.simulator.demo_view import PlainView
from edge.features.simulator.flows_demo import open_flows_demo, press_report, shift_report, two_components
from edge.foundation.errors import Unavailable
from tests.features.simulator.test_demo import processes_of


@pytest.mark.long
async def test_scene_ends_well_and_draws_the_last_flow(tmp_path: Path) -> None:
    output, chart = io.StringIO(), tmp_path / "flow.svg"
    async with open_flows_demo(PlainView(Console(file=output, width=200)), chart) as addresses:
        assert addresses.settings.exists()
        assert chart.read_text().startswith("<svg")
    text = output.getvalue()
    for expected in ("plant/press/mean = 4.6", "Cmk = 1.05", "component_stopped", "released by phone", "DEMO OK"):
        assert expected in text
    assert not addresses.settings.parent.exists()
    assert processes_of(str(addresses.settings)) == []


async def test_gateway_that_cannot_start_ends_the_scene(tmp_path: Path) -> None:
    page = DemoPage(port=99_999)
    with pytest.raises(Unavailable, match="gateway"):
        async with open_flows_demo(PlainView(Console(file=io.StringIO())), tmp_path / "x.svg", page):
            pass


@pytest.mark.parametrize("document", [press_report(), shift_report({"a": (1, 2), "b": (3, 4)}), two_components(5)])
def test_flow_of_the_demo_has_no_faults(document: dict[str, Any]) -> None:
    assert isinstance(plan_flow(document), Plan), plan_flow(document)


def test_flow_of_two_components_has_two_components() -> None:
    plan = plan_flow(two_components(5))
    assert isinstance(plan, Plan)
    assert [len(component) for component in plan.components] == [5, 3]
    assert "soak" in plan.components[1]
