"""`edge check recipe` reports all faults of a recipe together."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from tests.features.recipes.test_examiner import STUCK

STEP = {"name": "Init", "initial": True}
LEAVING = {"source": "Init", "target": "End", "condition": "always"}


def check(*arguments: str | Path) -> Result:
    """Call `edge check`."""
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def test_json_report_accepts_any_file_name(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.json")
    file.write_text(json.dumps({"steps": [STEP, {"name": "End"}], "transitions": [LEAVING]}))
    answer = check("recipe", file, "--json")
    assert answer.exit_code == 0
    assert json.loads(answer.output)["file"].endswith("caf\ufffd.json")


def test_a_good_recipe_has_no_problems(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps({"steps": [STEP, {"name": "End"}], "transitions": [LEAVING]}))
    answer = check("recipe", file)
    assert (answer.exit_code, answer.output) == (0, f"{file}: no problems\n")


def test_a_faulty_recipe_reports_every_fault_and_ends_with_status_2(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps({"steps": [STEP, STEP], "transitions": [LEAVING | {"condition": "and"}]}))
    answer = check("recipe", file)
    assert answer.exit_code == 2
    for reported in ("'Init' names 2 steps", "unknown target 'End'", "condition 'and'"):
        assert reported in answer.output
    assert json.loads(check("recipe", file, "--json").output)["faults"] == answer.output.splitlines()[:-1]


@pytest.mark.parametrize("text", ["{", "[]", "null", '"steps"', "\x00", "[" * 100_000])
def test_file_that_is_not_a_recipe_is_reported(tmp_path: Path, text: str) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(text)
    answer = check("recipe", file)
    assert answer.exit_code == 2
    assert answer.output.endswith(f"{file}: 1 problem\n")


def test_recipe_is_read_from_standard_input() -> None:
    answer = CliRunner().invoke(main, ["check", "recipe", "-"], input='{"steps": []}')
    assert answer.output.splitlines() == ["exactly one step must be initial, not none", "-: 1 problem"]


FIT: dict[str, Any] = {
    "steps": [{"name": "Fit", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Fit", "target": "Done", "condition": "actions.fit.failed"}],
    "actions": [
        {
            "name": "fit",
            "step": "Fit",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": "com.example.fit.v1",
            "timeout_seconds": 30,
        }
    ],
}


def test_dead_end_is_a_fault_with_its_place_and_a_script(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(FIT, indent=1))
    answer = check("recipe", file, "--json")
    assert answer.exit_code == 2
    report = json.loads(answer.output)
    assert (report["problems"], report["faults"], report["warnings"], report["bounded"]) == ([], [], [], False)
    first = report["findings"][0]
    assert (first["level"], first["kind"], first["element"]) == ("fault", "dead-end", {"type": "step", "name": "Fit"})
    assert (first["line"], first["column"]) == (3, 3)
    assert first["message"].startswith("step Fit: ")
    assert first["remedy"].startswith("Add a transition from Fit")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(first["witness"]["script"]))
    simulated = CliRunner().invoke(main, ["simulate", str(file), "--script", str(script), "--json"])
    assert json.loads(simulated.output)["final"] == "running"


def test_warnings_are_faults_when_the_check_is_strict(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    ways = [FIT["transitions"][0] | {"condition": "always"}, *FIT["transitions"]]
    file.write_text(json.dumps(FIT | {"transitions": ways}))
    plain, strict = check("recipe", file), check("recipe", file, "--strict")
    assert (plain.exit_code, strict.exit_code) == (0, 2)
    assert "warning: action fit of step Fit: " in plain.output
    assert strict.output.endswith(": 1 problem\n")


def test_page_shows_what_the_check_prints(tmp_path: Path) -> None:
    page = Path("docs/how-to/check-a-recipe.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:sh)?\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "fit.json"
    file.write_text(blocks[0].partition("<<END\n")[2].partition("END\n")[0])
    assert check("recipe", file).output == blocks[1].replace("fit.json", str(file))


def test_recipes_check_is_the_same_command(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps({"steps": [STEP, {"name": "End"}], "transitions": [LEAVING]}))
    answer = CliRunner().invoke(main, ["recipes", "check", str(file)])
    assert (answer.exit_code, answer.output) == (0, f"{file}: no problems\n")


def test_station_files_with_a_recipe_that_stands_still_have_a_fault(tmp_path: Path) -> None:
    masters = tmp_path / "scopes" / "station-1" / "workmasters"
    masters.mkdir(parents=True)
    (masters / "stuck.json").write_text(json.dumps(STUCK), encoding="utf-8")
    answer = CliRunner().invoke(main, ["check", "station", str(tmp_path)])
    assert answer.exit_code == 2
    assert "workmasters/stuck.json: workmaster station-1/stuck: step A: no exit can become true" in answer.stdout
