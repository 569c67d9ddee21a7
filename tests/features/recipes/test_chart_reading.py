"""Edits ask a recipe where an element stands, which ways lead on, and what a transition chooses."""

import pytest

from edge.features.recipes.chart_reading import EditedChart, ImpossibleEditError, require_new, transition_at
from tests.features.recipes.editing import BRANCHED, LINE

CHART = EditedChart(BRANCHED)


def test_element_of_a_path_has_its_place_and_next_one() -> None:
    place = CHART.place("B")
    assert place is not None
    assert (place.branch.name, place.path, place.index, place.elements) == ("sel", 1, 0, ("B", "C"))
    assert (CHART.next_in_path("B"), CHART.next_in_path("C"), CHART.place("I")) == ("C", None, None)
    assert CHART.entries("sel") == {"sel", "A", "B"}
    assert CHART.inside(("sel",)) == {"sel", "A", "B", "C"}


def test_ways_on_hold_the_implied_one_and_no_choice_of_a_path() -> None:
    assert [(way.source, way.target) for way in CHART.ways_on("B")] == [("B", "C")]
    assert [way.target for way in CHART.ways_on("sel")] == ["End"]
    assert [CHART.is_entry(way) for way in BRANCHED.transitions] == [False, True, False]


def test_run_of_elements_is_one_line() -> None:
    assert EditedChart(LINE).run("A", "C") == ("A", "B", "C")
    assert CHART.run("B", "C") == ("B", "C")
    with pytest.raises(ImpossibleEditError, match="does not follow"):
        CHART.run("A", "C")


def test_names_and_numbers_that_are_not_there_are_refused() -> None:
    for ask in (
        lambda: CHART.step("sel"),
        lambda: CHART.branch("A"),
        lambda: CHART.require("A", "X"),
        lambda: require_new(LINE, "New", "A"),
        lambda: require_new(LINE, ""),
        lambda: transition_at(LINE, 9),
    ):
        with pytest.raises(ImpossibleEditError):
            ask()
