"""Recipes are examined in a process of their own."""

import asyncio

from edge.features.recipes.examination import ExaminedRecipe, examine, examine_apart
from tests.features.recipes.recipes import action, recipe, way

STUCK = recipe(way("A", "B", "actions.a.failed"), actions=(action("a", "A"), action("b", "B")))
SOUND = recipe(way("A", "B"), actions=(action("a", "A"),))


def test_faults_and_warnings_are_sentences() -> None:
    (fault,) = examine(STUCK).faults
    assert fault.startswith("fault: step A: ")
    assert fault.endswith("(dead-end)")
    (warning,) = examine(recipe(way("A", "B", "never"), way("A", "C"))).warnings
    assert warning.startswith("warning: step B: ")


def test_recipe_that_cannot_be_loaded_has_no_findings() -> None:
    assert examine({"steps": []}) == ExaminedRecipe()


def test_process_answers_for_each_recipe() -> None:
    assert asyncio.run(examine_apart([SOUND, STUCK])) == [ExaminedRecipe(), examine(STUCK)]
