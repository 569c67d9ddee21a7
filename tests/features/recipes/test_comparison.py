"""One chart shows two recipes: what was added, removed and changed has a colour and a sign."""

import re
from typing import Any

import pytest
from hypothesis import given, settings

from edge.features.recipes.changes import (
    AddBranch,
    InsertAfter,
    RemovePath,
    RemoveStep,
    RenameElement,
    SetAction,
    SetTransition,
    Wrap,
)
from edge.features.recipes.comparison import comparison_svg
from edge.features.recipes.difference import DifferenceKind, differences
from edge.model.recipe import Action, BranchType, Interaction, Qualifier, Recipe, Transition
from tests.features.recipes.editing import BRANCHED, LINE, done, read
from tests.sfc.charts import recipes
from tests.sfc.recipes import recipe as data_of


def marks(old: Recipe, new: Recipe) -> set[str]:
    """Return the marks of the chart: the sign and the name of each element."""
    svg = comparison_svg(old, new, "en")
    assert svg.startswith("<svg")
    return set(re.findall(r'<g class="change \w+"><title>(.*?)</title>', svg))


TIGHTER = Action("a", "A", Qualifier.N, Interaction.PUSH_COMMAND, "a.v1", 5)


@pytest.mark.parametrize(
    ("recipe", "change", "expected"),
    [
        (LINE, InsertAfter("A", "New"), {"+ New"}),
        (LINE, RemoveStep("B"), {"− B", "− b"}),
        (LINE, SetTransition(0, Transition("A", "B", "ready")), {"~ A → B: ready"}),
        (LINE, SetAction(0, TIGHTER), {"~ a"}),
        (LINE, RenameElement("B", "Fit"), {"− B", "+ Fit"}),
        (LINE, AddBranch("A", "C", BranchType.SIMULTANEOUS, "both", "New"), {"+ both", "+ New"}),
        (LINE, Wrap("B", "B", BranchType.SELECTION, "only"), {"+ only"}),
        (BRANCHED, RemovePath("sel", 0), {"− A", "− a", "~ sel"}),
        (BRANCHED, RemoveStep("B"), {"− B", "− b", "~ sel"}),
    ],
    ids=lambda item: type(item).__name__,
)
def test_changes_are_marked(recipe: Recipe, change: Any, expected: set[str]) -> None:
    found = marks(recipe, done(recipe, change))
    assert expected <= found, found


def test_equal_recipes_have_no_marks() -> None:
    assert marks(LINE, LINE) == set()
    assert 'class="change' not in comparison_svg(BRANCHED, BRANCHED, "en")


def test_removed_branch_stays_in_the_chart() -> None:
    plain = read(data_of("I End", [{"source": "I", "target": "End", "condition": "always"}]))
    assert {"− sel", "− A", "− B"} <= marks(BRANCHED, plain)


def test_recipe_without_a_shape_has_no_chart() -> None:
    lost = Recipe(LINE.steps, (Transition("A", "X", "always"),))
    assert comparison_svg(LINE, lost, "en") == ""
    assert comparison_svg(lost, LINE, "en").startswith("<svg")


@settings(max_examples=60)
@given(recipes(), recipes())
def test_any_two_recipes_are_drawn_with_every_added_step(one: Any, other: Any) -> None:
    old, new = read(one), read(other)
    found = marks(old, new)
    added = {
        item.name for item in differences(old, new) if item.kind is DifferenceKind.ADDED and item.element == "step"
    }
    assert {f"+ {name}" for name in added} <= found
