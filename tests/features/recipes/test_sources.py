"""Pages and operations find the recipe that they are about, and refuse what is not there."""

import pytest

from edge.features.recipes.sources import RecipeSource, number_of
from edge.foundation.errors import Refused


def test_numbers_of_revisions_are_decimal_digits() -> None:
    assert (number_of(""), number_of("released"), number_of("12")) == (None, None, 12)
    for text in ("x", "-1", "1.5", "٣", "1" * 10):
        with pytest.raises(Refused, match="is not a number"):
            number_of(text)


def test_addresses_name_the_recipe_whatever_its_characters() -> None:
    source = RecipeSource("line/1", "WM & 1", "{}")
    assert source.query == "scope=line%2F1&id=WM%20%26%201"
    assert source.address == "/api/v1/recipes/line%2F1/WM%20%26%201/revisions/released"
