"""The program that checks recipes answers as the check in this process."""

import msgspec

from edge.features.page.recipe_check import CheckRequest, answer, check_recipe
from edge.features.page.recipe_models import RecipeResult
from tests.station.plant import LINEAR


def test_each_request_is_answered_as_the_check_in_this_process() -> None:
    for recipe, active in ((LINEAR, ("tighten",)), ({"steps": []}, ())):
        result = answer(msgspec.json.encode(CheckRequest(recipe, active)))
        assert msgspec.json.decode(result, type=RecipeResult) == check_recipe(recipe, active)
