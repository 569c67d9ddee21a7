"""`edge recipes replay` shows what past jobs would have done with another recipe."""

import json

from edge.store.client import Store
from tests.cli.calling import Edge
from tests.features.recipes.test_past_jobs import FIT, ran, stricter


async def test_first_other_decision_of_each_job_is_printed(edge: Edge, store: Store) -> None:
    await ran(store, 82, 90)
    same = await edge("recipes", "replay", "-", "--id", "WM", given=json.dumps(FIT))
    assert (same.exit_code, same.stdout) == (0, "jobs: 2, the same: 2, other decisions: 0\n")
    other = await edge("recipes", "replay", "-", "--id", "WM", given=json.dumps(stricter(85)))
    assert other.exit_code == 1
    assert "J0: decision 2, " in other.stdout
    assert "  then: a completed, leaves A, enters Done" in other.stdout
    assert "  now:  a completed, leaves A" in other.stdout
    data = json.loads((await edge("recipes", "replay", "-", "--id", "WM", "--json", given=json.dumps(FIT))).stdout)
    assert (data["same"], data["different"]) == (2, 0)


async def test_invalid_recipe_is_not_replayed(edge: Edge) -> None:
    assert (await edge("recipes", "replay", "-", "--id", "WM", given='{"steps": []}')).exit_code == 2
