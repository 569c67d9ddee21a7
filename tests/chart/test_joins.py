"""Alternatives converge at their common target, and the longest path goes straight down."""

import pytest

from edge.chart.joins import Joins

Arcs = dict[str, list[str]]


def follow(arcs: Arcs, block: str, taken: str = "", outer: str | None = None) -> str | None:
    """Ask what stands straight below a block when those in `taken` are drawn already."""
    joins = Joins(next(iter(arcs)), arcs, {name: [] for name in arcs})
    return joins.follow(block, arcs[block], outer, 0, lambda name: name not in taken)


DIAMOND: Arcs = {"A": ["B", "C"], "B": ["D"], "C": ["D"], "D": []}
SKIP: Arcs = {"A": ["B", "C"], "B": ["C"], "C": []}
ENDS: Arcs = {"A": ["B", "C"], "B": [], "C": []}
LONG: Arcs = {"A": ["B", "X"], "B": ["C"], "C": ["D"], "D": ["E"], "E": [], "X": []}
FAULTS: Arcs = {"A": ["B", "X"], "B": ["C", "X"], "C": ["D", "X"], "D": [], "X": []}


@pytest.mark.parametrize(
    ("arcs", "below"),
    [(DIAMOND, "D"), (SKIP, "C"), (ENDS, None), (LONG, "B"), (FAULTS, "B")],
    ids=["diamond", "skip", "ends", "long", "faults"],
)
def test_common_target_of_a_divergence_is_placed_straight_below(arcs: Arcs, below: str | None) -> None:
    assert follow(arcs, "A") == below


def test_single_path_goes_straight_down() -> None:
    assert follow(DIAMOND, "B") == "D"


def test_block_already_drawn_is_not_drawn_again() -> None:
    assert follow({"A": ["B"], "B": ["A"]}, "B", taken="A") is None
    assert follow({"A": ["B"], "B": ["A", "C"], "C": []}, "B", taken="A") == "C"


def test_short_detour_to_the_convergence_is_not_drawn_inline() -> None:
    arcs: Arcs = {"A": ["B", "C"], "B": ["D", "R"], "R": ["D"], "C": ["D"], "D": []}
    assert follow(arcs, "A") == "D"
    assert follow(arcs, "B", taken="D", outer="D") is None


def test_block_with_many_sources_is_drawn_separately() -> None:
    joins = Joins("A", FAULTS, {name: [] for name in FAULTS})
    assert not joins.stands_inline("X")
    assert joins.stands_inline("B")


def test_hidden_path_makes_a_block_reachable_without_a_join() -> None:
    joins = Joins("A", {"A": ["B"], "B": [], "X": []}, {"A": ["X"], "B": ["X"], "X": []})
    assert joins.follow("A", ["B"], None, 0, lambda _name: True) == "B"
    assert joins.stands_inline("X")
