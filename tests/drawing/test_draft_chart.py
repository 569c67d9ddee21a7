"""Recipes with faults are drawn without their references to nothing, and their faulty steps are marked."""

from edge.drawing.draft_chart import draft_drawing, draft_svg
from edge.drawing.shapes import ChartTarget
from edge.drawing.svg import editor_svg
from edge.model.recipe import Action, Interaction, Qualifier, Recipe, Step, Transition

FAULT = "transitions[0] (A → X): unknown target 'X', no step or branch has this name"


def test_faulty_step_is_marked_and_the_chart_is_drawn() -> None:
    recipe = Recipe((Step("A", initial=True), Step("B")), (Transition("A", "X", "always"),))
    chart = draft_svg(recipe, [FAULT])
    assert 'class="initial failed"' in chart or 'class="step failed"' in chart
    assert ">B</text>" in chart


def test_active_steps_are_marked_in_a_whole_recipe() -> None:
    recipe = Recipe((Step("A", initial=True), Step("B")), (Transition("A", "B", "always"),))
    assert 'class="initial active"' in draft_svg(recipe, (), ["A"])


def targets(recipe: Recipe, faults: list[str]) -> list[tuple[str, str]]:
    drawing = draft_drawing(recipe, faults)
    assert drawing is not None
    return [(shape.kind, shape.key) for shape in drawing.shapes if isinstance(shape, ChartTarget)]


def test_elements_of_a_faulty_recipe_keep_their_numbers() -> None:
    actions = tuple(
        Action(name, step, Qualifier.N, Interaction.PUSH_COMMAND, "t") for name, step in (("a", "X"), ("b", "A"))
    )
    steps = (Step("A", initial=True), Step("B"))
    recipe = Recipe(steps, (Transition("A", "X", "always"), Transition("A", "B", "always")), actions)
    assert targets(recipe, [FAULT]) == [("action", "1"), ("step", "A"), ("transition", "1"), ("step", "B")]


def test_each_element_can_be_selected_and_its_name_is_escaped() -> None:
    recipe = Recipe((Step('A "<b>"', initial=True),))
    drawing = draft_drawing(recipe, ())
    assert drawing is not None
    assert 'tabindex="-1" aria-label="A &quot;&lt;b&gt;&quot;" data-kind="step"' in editor_svg(drawing)
    assert "target" not in draft_svg(recipe, ())
