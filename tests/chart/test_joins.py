"""Alternatives converge where they meet again, and the long way goes straight down."""

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
def test_what_stands_straight_below_a_divergence(arcs: Arcs, below: str | None) -> None:
    assert follow(arcs, "A") == below


def test_a_single_way_goes_straight_down() -> None:
    assert follow(DIAMOND, "B") == "D"


def test_what_is_drawn_already_is_not_drawn_again() -> None:
    assert follow({"A": ["B"], "B": ["A"]}, "B", taken="A") is None
    assert follow({"A": ["B"], "B": ["A", "C"], "C": []}, "B", taken="A") == "C"


def test_a_short_detour_to_where_others_converge_stays_beside() -> None:
    arcs: Arcs = {"A": ["B", "C"], "B": ["D", "R"], "R": ["D"], "C": ["D"], "D": []}
    assert follow(arcs, "A") == "D"
    assert follow(arcs, "B", taken="D", outer="D") is None


def test_blocks_that_many_lead_to_stand_by_themselves() -> None:
    joins = Joins("A", FAULTS, {name: [] for name in FAULTS})
    assert not joins.stands_inline("X")
    assert joins.stands_inline("B")


def test_a_hidden_way_reaches_a_block_and_does_not_join() -> None:
    joins = Joins("A", {"A": ["B"], "B": [], "X": []}, {"A": ["X"], "B": ["X"], "X": []})
    assert joins.follow("A", ["B"], None, 0, lambda _name: True) == "B"
    assert joins.stands_inline("X")
