"""The text of a draft is JSON that a person reads."""

from edge.features.recipes.workbench_requests import text_of


def test_recipe_is_written_with_two_spaces() -> None:
    assert text_of({"steps": [1]}) == '{\n  "steps": [\n    1\n  ]\n}'
