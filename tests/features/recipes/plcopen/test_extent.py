"""The size of a chart is estimated before it is unfolded, and never too small."""

from typing import Any

import pytest
from hypothesis import given

from edge.features.recipes.plcopen.extent import ends_of
from edge.sfc.structure import Structure
from tests.sfc.charts import recipes
from tests.sfc.recipes import branch, net_of, recipe, transition


@given(recipes())
@pytest.mark.hypothesis
def test_the_estimate_is_at_least_the_size(data: dict[str, Any]) -> None:
    parsed = net_of(data).recipe
    assert ends_of(parsed) >= sum(len(arc.sources) + len(arc.targets) for arc in Structure(parsed).arcs)


def test_selections_in_parallel_paths_multiply() -> None:
    steps = [f"S{number}" for number in range(9)]
    selections = [branch(f"s{path}", "selection", *steps[3 * path : 3 * path + 3]) for path in range(3)]
    ways = [transition("A", "par"), transition("par", "E")]
    data = recipe(" ".join(["A", "E", *steps]), ways, [], branch("par", "simultaneous", "s0", "s1", "s2"), *selections)
    assert ends_of(net_of(data).recipe) == 2 * 27 * (3 + 1)
