"""Differences of two recipes: none of equal ones, each edit as what it is."""

from typing import Any

import msgspec
from hypothesis import given
from msgspec.structs import replace

from edge.features.recipes.changes import AddWay, InsertAfter, RenameAction, SetRecipe
from edge.features.recipes.difference import DifferenceKind, RecipeDifference, differences
from edge.model.recipe import Action, Interaction, Qualifier
from tests.features.recipes.editing import LINE, done, read
from tests.sfc.charts import recipes


def brief(found: tuple[RecipeDifference, ...]) -> list[tuple[str, str, str]]:
    return [(item.kind, f"{item.element} {item.name}".rstrip(), item.member) for item in found]


def test_inserted_step_is_added_with_its_transitions() -> None:
    assert brief(differences(LINE, done(LINE, InsertAfter("A", "New")))) == [
        ("added", "step New", ""),
        ("added", "transition A → New", ""),
        ("added", "transition New → B", ""),
        ("removed", "transition A → B", ""),
    ]


def test_changed_members_have_both_values() -> None:
    slower = replace(LINE.actions[1], timeout_seconds=90, parameters={"torque": 85})
    changed = replace(LINE, actions=(LINE.actions[0], slower, LINE.actions[2]))
    changes = {item.member: (item.before, item.after) for item in differences(LINE, changed)}
    assert changes["parameters"] == (None, {"torque": 85})
    assert changes["timeout_seconds"][1] == 90


def test_members_of_the_recipe_are_compared() -> None:
    assert brief(differences(LINE, done(LINE, SetRecipe(verdict="actions.a.done", title="Axle")))) == [
        ("changed", "recipe", "verdict"),
        ("changed", "recipe", "title"),
    ]


def test_way_that_is_tried_elsewhere_has_its_order_once() -> None:
    """The list said nothing of a condition that came or went with its transition."""
    found = differences(LINE, done(LINE, AddWay("A", "C", "y")))
    assert [(item.kind, item.name, item.member, item.before, item.after) for item in found] == [
        ("changed", "A → B", "order", 1, 2),
        ("added", "A → C", "", None, {**WAY, "order": 1}),
    ]
    renumbered = replace(LINE, transitions=(replace(LINE.transitions[0], priority=3), LINE.transitions[1]))
    assert brief(differences(LINE, renumbered)) == [("changed", "transition A → B", "priority")]


WAY = {"source": "A", "target": "C", "condition": "y", "priority": 1}


def test_renamed_action_is_removed_and_added() -> None:
    found = differences(LINE, done(LINE, RenameAction("b", "fit")))
    assert [(item.kind, item.name) for item in found if item.element == "action"] == [
        (DifferenceKind.ADDED, "fit · B"),
        (DifferenceKind.REMOVED, "b · B"),
    ]


def test_second_association_of_an_action_has_a_name_of_its_own() -> None:
    again = Action("a", "A", Qualifier.P0, Interaction.PUSH_COMMAND, "x.v1")
    (difference,) = differences(LINE, replace(LINE, actions=(*LINE.actions, again)))
    assert (difference.kind, difference.name) == ("added", "a · A (2)")


@given(recipes())
def test_recipe_that_was_written_and_read_has_no_difference(drawn: dict[str, Any]) -> None:
    recipe = read(drawn)
    assert differences(recipe, read(msgspec.json.decode(msgspec.json.encode(recipe)))) == ()
