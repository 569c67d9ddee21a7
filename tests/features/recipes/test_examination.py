"""Recipes are examined in a process of their own."""

import asyncio
import time

import pytest
import uvloop

from edge.features.recipes.examination import ExaminedRecipe, examine_apart
from edge.features.recipes.examiner import examine
from edge.foundation.errors import LocalFault
from tests.features.recipes.test_examiner import SOUND, STUCK


def test_process_answers_for_each_recipe() -> None:
    assert asyncio.run(examine_apart([SOUND, STUCK])) == [ExaminedRecipe(), examine(STUCK)]


def test_process_that_ends_before_its_input_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy gateway wrote to it too late, and storing a Work Master was answered as a defect of this software."""
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")

    async def be_busy() -> None:
        while True:
            time.sleep(0.2)  # noqa: ASYNC251 - the loop is held on purpose
            await asyncio.sleep(0)

    async def run() -> None:
        busy = asyncio.create_task(be_busy())
        try:
            with pytest.raises(LocalFault, match="has ended"):
                await examine_apart([SOUND])
        finally:
            busy.cancel()

    uvloop.run(run())
