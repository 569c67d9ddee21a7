"""`[recipes]`: faulty recipes of the MES are taken unless the settings refuse them."""

from edge.config import Settings
from edge.features.recipes.settings import RecipesSettings


def test_faulty_recipes_are_taken_by_default() -> None:
    assert not Settings().section(RecipesSettings).refuse_faulty
