"""The order in which ways are tried: a new one is never hidden, and places are counted from 1 as in the chart."""

from edge.drawing.draft_chart import draft_svg
from edge.features.recipes.changes import AddPath, AddWay, MoveTransition
from edge.features.recipes.way_edits import is_always
from edge.model.recipe import Recipe
from tests.features.recipes.editing import BRANCHED, LINE, done, read, reason
from tests.sfc.recipes import recipe, transition


def tried(recipe: Recipe, source: str) -> list[tuple[str, int]]:
    """Return where the ways from an element lead, in their order, with their priorities."""
    own = [way for way in recipe.transitions if way.source == source]
    return [(way.target, way.priority) for way in sorted(own, key=lambda way: way.priority)]


def test_new_way_is_tried_before_one_that_is_always_true() -> None:
    """A jump behind `always` never clears."""
    for always in ("always", "true"):
        line = read(recipe("A B", [transition("A", "B", always)]))
        assert tried(done(line, AddWay("A", "A", "x > 1")), "A") == [("A", 1), ("B", 2)]
    assert tried(done(LINE, AddWay("B", "A")), "B") == [("C", 1), ("A", 2)]
    conditions = [transition("A", "B", "x > 1", 3), transition("A", "A", "always", 7), transition("A", "B", "y", 9)]
    edited = done(read(recipe("A B", conditions)), AddWay("A", "B", "z"))
    assert [way.priority for way in edited.transitions] == [1, 3, 4, 2]


def test_single_way_keeps_its_priority() -> None:
    assert tried(done(LINE, AddWay("C", "A", "x")), "C") == [("A", 0)]


def test_new_way_takes_the_place_that_is_given() -> None:
    edited = done(done(LINE, AddWay("A", "A", "x")), AddWay("A", "C", "y", 2))
    assert tried(edited, "A") == [("A", 1), ("C", 2), ("B", 3)]
    assert tried(done(LINE, AddWay("A", "C", "y", 99)), "A") == [("B", 1), ("C", 2)]
    assert "no step or branch 'X'" in reason(LINE, AddWay("A", "X"))


def test_jump_from_a_path_writes_its_implied_way() -> None:
    assert tried(done(BRANCHED, AddWay("B", "B", "x")), "B") == [("B", 1), ("C", 2)]


def test_new_path_is_tried_before_an_open_one_that_is_written() -> None:
    ways = [transition("I", "sel"), transition("sel", "A", "always"), transition("sel", "End")]
    chart = recipe("I A End", ways)
    chart["branches"] = [{"name": "sel", "type": "selection", "branches": [["A"]]}]
    edited = done(read(chart), AddPath("sel", "Other", "x"))
    assert tried(edited, "sel") == [("End", 0), ("Other", 1), ("A", 2)]


def test_moved_transition_has_the_number_of_the_chart() -> None:
    line = done(done(LINE, AddWay("A", "A", "first_one")), AddWay("A", "C", "second_one"))
    number = next(at for at, way in enumerate(line.transitions) if way.condition == "second_one")
    moved = done(line, MoveTransition(number, 1))
    assert tried(moved, "A") == [("C", 1), ("A", 2), ("B", 3)]
    assert tried(done(moved, MoveTransition(number, 9)), "A") == [("A", 1), ("B", 2), ("C", 3)]
    assert "no transition 99" in reason(LINE, MoveTransition(99, 1))
    assert draft_svg(moved, (), ()) != draft_svg(line, (), ())


def test_only_the_constant_true_is_always() -> None:
    assert [is_always(text) for text in ("always", "TRUE", " true ", "x", "x >", "1 == 1")] == [
        True,
        False,
        True,
        False,
        False,
        False,
    ]
