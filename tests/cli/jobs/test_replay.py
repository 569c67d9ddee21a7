"""Tests of `edge jobs replay`."""

import json
from pathlib import Path

from tests.cli.calling import Edge
from tests.cli.jobs.test_run_history import worked
from tests.station.plant import LINEAR, FakeEquipment, Plant


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
