"""The process that examines recipes finds faults and warnings."""

from edge.features.recipes.examination import ExaminedRecipe
from edge.features.recipes.examiner import examine
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
