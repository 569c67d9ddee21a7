"""The flows of the demo have no faults."""

from typing import Any

import pytest

from edge.features.flows.plan import Plan, plan_flow
from edge.features.simulator.flow_documents import press_report, shift_report, two_components


@pytest.mark.parametrize("document", [press_report(), shift_report({"a": (1, 2), "b": (3, 4)}), two_components(5)])
def test_flow_of_the_demo_has_no_faults(document: dict[str, Any]) -> None:
    assert isinstance(plan_flow(document), Plan), plan_flow(document)


def test_flow_of_two_components_has_two_components() -> None:
    plan = plan_flow(two_components(5))
    assert isinstance(plan, Plan)
    assert [len(each) for each in plan.components] == [5, 3]
    assert "soak" in plan.components[1]
