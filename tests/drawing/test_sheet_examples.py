"""The examples for recipe authors are valid, run to their end and match their drawings."""

from typing import Any

import pytest

from edge.features.simulator.script import Script
from edge.features.simulator.virtual_simulation import simulate
from edge.model.recipe import BranchType, Qualifier
from tests.drawing.examples import PAGE, chart, examples

EXAMPLES = examples()


@pytest.mark.parametrize(
    ("data", "drawn"), [(data, drawn) for _, data, drawn in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_chart_of_each_example_matches_its_recipe(data: dict[str, Any], drawn: str) -> None:
    assert chart(data) == drawn


@pytest.mark.parametrize("data", [data for _, data, _ in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_each_example_is_valid_without_warnings(data: dict[str, Any]) -> None:
    trace = simulate(data, Script())
    assert trace.final != "rejected_at_load", trace.error
    assert trace.warnings == []


def test_every_heading_has_an_example() -> None:
    assert PAGE.read_text().count("\n## ") == len(EXAMPLES)


def test_each_qualifier_and_each_kind_of_branch_has_an_example() -> None:
    recipes = [data for _, data, _ in EXAMPLES]
    assert {action["qualifier"] for data in recipes for action in data["actions"]} == {
        qualifier.value for qualifier in Qualifier
    }
    assert {branch["type"] for data in recipes for branch in data.get("branches", ())} == {
        branch_type.value for branch_type in BranchType
    }
