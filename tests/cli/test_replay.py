"""Tests of `edge replay`."""

import json

import pytest

from tests.cli.calling import Edge
from tests.cli.jobs.test_run_history import worked
from tests.station.plant import FakeEquipment, Plant


async def test_all_jobs_are_replayed(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    result = await edge("replay", "--all")
    assert result.exit_code == 0
    assert "jobs replayed: 1" in result.output


@pytest.mark.damaged_runs
async def test_job_that_differs_fails_the_check(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    key = plant.store.keys.sfc_history("J1")
    ((last_id, _),) = await plant.store.execute("XREVRANGE", key, "+", "-", "COUNT", 1)
    await plant.store.execute("XDEL", key, last_id)
    result = await edge("replay", "--all", "--json")
    assert result.exit_code == 1
    assert [value["job_order_id"] for value in json.loads(result.output)["differing"]] == ["J1"]


async def test_job_without_history_is_named(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    await plant.store.execute("DEL", plant.store.keys.sfc_history("J1"))
    result = await edge("replay", "--all")
    assert (result.exit_code, "not replayed: no decision about job 'J1'" in result.output) == (0, True)
