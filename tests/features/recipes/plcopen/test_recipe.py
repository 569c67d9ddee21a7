"""Branches are made of a chart so that the recipe moves as the chart does."""

import pytest

from edge.sfc.net import Net
from edge.sfc.structure import Structure
from tests.features.recipes.plcopen.drawn import chart, faults_of, fork, initial, jump, meet, recipe_of, step, when
from tests.sfc.recipes import net_of


def arcs_of(data: bytes) -> list[tuple[str, str, str]]:
    """Return the arcs of the recipe of a file that can clear, sorted."""
    net: Net = net_of(recipe_of(data))
    arcs = ((" ".join(arc.sources), " ".join(arc.targets), arc.conditions) for arc in Structure(net.recipe).arcs)
    return sorted((before, after, " ".join(texts)) for before, after, texts in arcs if "never" not in texts)


def test_a_selection_becomes_a_branch_where_its_paths_are_whole() -> None:
    data = chart(
        initial(1, "A"),
        when(2, "x", 1),
        when(3, "y", 1, x=5),
        step(4, "B", 2),
        step(5, "C", 3),
        when(6, "p", 4),
        when(7, "q", 5),
        step(8, "D", 6, 7),
    )
    assert recipe_of(data)["branches"] == [{"name": "Selection1", "type": "selection", "branches": [["B"], ["C"]]}]
    assert arcs_of(data) == [("A", "B", "x"), ("A", "C", "y"), ("B", "D", "p"), ("C", "D", "q")]


def test_rework_in_a_parallel_path_keeps_its_ways() -> None:
    data = chart(
        initial(1, "A"),
        when(2, "go", 1),
        fork(3, 2),
        step(4, "B", 3),
        step(5, "C", 3, x=50),
        when(6, "ok", 4),
        step(7, "E", 6),
        when(8, "bad", 7),
        step(9, "Rework", 8),
        when(10, "again", 9),
        jump(11, "B", 10),
        meet(12, 7, 5),
        when(13, "end", 12),
        step(14, "F", 13),
    )
    assert arcs_of(data) == [
        ("A", "B C", "go"),
        ("B", "E", "ok"),
        ("E", "Rework", "bad"),
        ("E C", "F", "end"),
        ("Rework", "B", "again"),
    ]


def test_a_parallel_path_that_loops_around_one_step_is_a_fault() -> None:
    data = chart(
        initial(1, "A"),
        when(2, "go", 1),
        fork(3, 2),
        step(4, "B", 3),
        step(5, "C", 3),
        when(6, "bad", 4),
        step(7, "Rework", 6),
        when(8, "again", 7),
        jump(9, "B", 8),
        meet(10, 4, 5),
        when(11, "end", 10),
        step(12, "D", 11),
    )
    assert faults_of(data) == [
        "localId 2, line 6: a parallel path begins and ends with step 'B': add a step at its end"
    ]


@pytest.mark.parametrize("name", ["", "A", "a", "Free"])
def test_a_branch_has_a_name_that_nothing_else_has(name: str) -> None:
    data = chart(
        initial(1, "A"),
        when(2, "go", 1),
        fork(3, 2),
        step(4, "B", 3),
        step(5, "C", 3),
        meet(6, 4, 5),
        when(7, "e", 6),
        step(8, "D", 7),
    ).replace(b'<simultaneousDivergence localId="3"', f'<simultaneousDivergence localId="3" name="{name}"'.encode())
    if name in {"A", "a"}:
        assert faults_of(data) == ["localId 3, " + name + ", line 7: the name stands in line 5, too"]
    else:
        assert recipe_of(data)["branches"][0]["name"] == (name or "Parallel1")
