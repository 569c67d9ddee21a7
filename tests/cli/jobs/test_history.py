"""Tests of `edge jobs history`."""

import json
from pathlib import Path
from typing import Any

import pytest

from edge.model.job_state import Cause
from edge.sfc.signal import MirrorCopy
from tests.cli.calling import Edge
from tests.station.plant import LINEAR, FakeEquipment, Plant, action, linear, obliging, order


async def worked(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()


async def test_history_shows_signals_and_their_changes(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    lines = (await edge("jobs", "history", "J1")).output.splitlines()
    assert lines[0].split() == ["time", "after", "signal", "changes"]
    assert "0.000 s" in lines[1]
    assert "start" in lines[1]
    assert any("answer to a 1: done" in line and "a ✓ completed" in line for line in lines)


async def test_json_history_has_every_decision(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    found = json.loads((await edge("jobs", "history", "J1", "--json")).output)
    assert found["job_order_id"] == "J1"
    assert [decision["number"] for decision in found["decisions"]] == sorted(
        decision["number"] for decision in found["decisions"]
    )
    assert found["decisions"][0]["signal"] == "start"
    assert found["decisions"][0]["commands"] == [{"phase": "start", "step": "one", "action": "a"}]


async def test_history_names_the_decisions_that_are_gone(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    assert "no longer kept" not in (await edge("jobs", "history", "J1")).output
    await plant.store.execute("XTRIM", plant.store.keys.sfc_history("J1"), "MAXLEN", 1)
    last = json.loads((await edge("jobs", "history", "J1", "--json")).output)["decisions"][0]["number"]
    lines = (await edge("jobs", "history", "J1")).output.splitlines()
    assert lines[0] == f"decisions 1 to {last - 1} are no longer kept: see [retention] decisions"


async def test_gantt_chart_is_written(edge: Edge, plant: Plant, tool: FakeEquipment, tmp_path: Path) -> None:
    await worked(plant, tool)
    assert (await edge("jobs", "history", "J1", "--svg", tmp_path / "j.svg")).exit_code == 0
    assert (tmp_path / "j.svg").read_text().startswith("<svg")
    refused = await edge("jobs", "history", "J1", "--svg", tmp_path / "none" / "j.svg")
    assert (refused.exit_code, "cannot be written" in refused.output) == (1, True)


async def test_unknown_job_has_no_history(edge: Edge) -> None:
    refused = await edge("jobs", "history", "J9")
    assert (refused.exit_code, "no run of job 'J9'" in refused.output) == (1, True)


async def test_history_shows_queries_of_mirrored_sets(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    recipe: dict[str, Any] = linear(action("a", "one"), action("b", "two"))
    recipe["transitions"][0]["condition"] = "'C7' in mirrors.carriers and not ('C8' in mirrors.carriers)"
    await plant.teach("gated", recipe)
    plant.runs.mirrors = lambda: {"carriers": MirrorCopy(frozenset({"C7", "C9"}), is_stale=True)}
    await plant.order(Cause.STORE_AND_START, order("J1", "gated"))
    await plant.drive()
    result = await edge("jobs", "history", "J1")
    assert "carriers has C7 (stale); carriers has not C8 (stale)" in result.output
    decisions = json.loads((await edge("jobs", "history", "J1", "--json")).output)["decisions"]
    assert {"carriers": {"members": ["C7"], "others": ["C8"], "stale": True}} in [
        decision["mirrors"] for decision in decisions
    ]


async def test_replay_of_a_job_matches_its_history(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    await worked(plant, tool)
    result = await edge("jobs", "replay", "J1")
    assert result.exit_code == 0
    assert "decisions are the same" in result.output


async def test_replay_with_a_changed_recipe_shows_the_differing_decision(
    edge: Edge, plant: Plant, tool: FakeEquipment, tmp_path: Path
) -> None:
    await worked(plant, tool)
    changed = json.loads(json.dumps(LINEAR))
    changed["transitions"][0]["condition"] = "a.ok == 5"
    (tmp_path / "new.json").write_text(json.dumps(changed))
    result = await edge("jobs", "replay", "J1", "--recipe", tmp_path / "new.json")
    assert result.exit_code == 1
    assert "recorded: a ✓ completed" in result.output
    found = json.loads((await edge("jobs", "replay", "J1", "--recipe", tmp_path / "new.json", "--json")).output)
    assert (found["same"], len(found["differences"]) > 0) == (False, True)


async def test_replay_with_a_rejected_recipe_reports_the_faults(edge: Edge, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    result = await edge("jobs", "replay", "J1", "--recipe", tmp_path / "bad.json")
    assert (result.exit_code, "steps" in result.output) == (2, True)


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
