"""The name of what a job runs: its text is read again, and nothing is named by an empty one."""

import pytest

from edge.model.recipe_name import NO_RECIPE_NAME, RecipeName, read_recipe_name


@pytest.mark.parametrize(("name", "text"), [(RecipeName(12, "3f0c"), "12 3f0c"), (NO_RECIPE_NAME, "")])
def test_text_of_a_name_is_read_again(name: RecipeName, text: str) -> None:
    assert (str(name), read_recipe_name(text)) == (text, name)
