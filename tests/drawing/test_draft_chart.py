"""Recipes with faults are drawn without their references to nothing, and their faulty steps are marked."""

from edge.drawing.draft_chart import draft_svg
from edge.model.recipe import Recipe, Step, Transition

FAULT = "transitions[0] (A → X): unknown target 'X', no step or branch has this name"


def test_faulty_step_is_marked_and_the_chart_is_drawn() -> None:
    recipe = Recipe((Step("A", initial=True), Step("B")), (Transition("A", "X", "always"),))
    chart = draft_svg(recipe, [FAULT])
    assert 'class="initial failed"' in chart or 'class="step failed"' in chart
    assert ">B</text>" in chart


def test_active_steps_are_marked_in_a_whole_recipe() -> None:
    recipe = Recipe((Step("A", initial=True), Step("B")), (Transition("A", "B", "always"),))
    assert 'class="initial active"' in draft_svg(recipe, (), ["A"])
