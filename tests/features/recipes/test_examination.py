"""Recipes are examined in a process of their own."""

import asyncio

from edge.features.recipes.examination import ExaminedRecipe, examine_apart
from edge.features.recipes.examiner import examine
from tests.features.recipes.test_examiner import SOUND, STUCK


def test_process_answers_for_each_recipe() -> None:
    assert asyncio.run(examine_apart([SOUND, STUCK])) == [ExaminedRecipe(), examine(STUCK)]
