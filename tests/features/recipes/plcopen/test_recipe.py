"""Branches are made of a chart so that the recipe moves as the chart does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.features.recipes.plcopen.reader import import_plcopen
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


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Draw ways between up to seven steps; the first one reaches all others."""
    size = draw(st.integers(2, 7))
    tree = [(draw(st.integers(0, number - 1)), number) for number in range(1, size)]
    more = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=6))
    return draw(st.permutations([*tree, *more]))


def chart_of(arcs: list[tuple[int, int]], last: int | None) -> bytes:
    """Draw the steps S0, S1 and so on with ways w0, w1; with a `last` one as a path that ends there next to another."""
    size = 1 + max(max(arc) for arc in arcs)
    inward: dict[int, list[int]] = {number: [] for number in range(size)}
    for number, (_, target) in enumerate(arcs, 200):
        inward[target].append(number)
    elements = [when(number, f"w{number - 200}", source) for number, (source, _) in enumerate(arcs, 200)]
    elements += [step(number, f"S{number}", *inward[number]) for number in range(1, size)]
    if last is None:
        return chart(initial(0, "S0", *inward[0]), *elements)
    elements += [initial(101, "Init"), when(102, "go", 101), fork(100, 102), step(103, "Other", 100)]
    elements += [meet(104, last, 103), when(105, "done", 104), step(106, "End", 105)]
    return chart(step(0, "S0", 100, *inward[0]), *elements)


@given(graphs(), st.none() | st.integers(0, 6))
@settings(max_examples=300)
@pytest.mark.hypothesis
def test_any_ways_between_steps_are_those_of_the_recipe(arcs: list[tuple[int, int]], last: int | None) -> None:
    """Outside or in one of two parallel paths, in the order of the file; what has no form is a fault."""
    last = None if last is None else min(last, max(max(arc) for arc in arcs))
    imported = import_plcopen(chart_of(arcs, last))
    if imported.recipe is None:
        reasons = ("begins and ends", "livelock", "cannot be reached", "more than one path")
        assert all(any(reason in str(fault.text) for reason in reasons) for fault in imported.faults), imported.faults
        return
    expected: dict[str, list[tuple[str, str]]] = {}
    for number, (source, target) in enumerate(arcs):
        expected.setdefault(f"S{source}", []).append((f"S{target}", f"w{number}"))
    if last is not None:
        expected.setdefault(f"S{last}", []).append(("End", "done"))
    found: dict[str, list[tuple[str, str]]] = {}
    for arc in Structure(net_of(imported.recipe).recipe).arcs:
        if "never" not in arc.conditions and "Init" not in arc.sources:
            name = next(name for name in arc.sources if name != "Other")
            found.setdefault(name, []).append((" ".join(arc.targets), " ".join(arc.conditions)))
    assert found == expected
