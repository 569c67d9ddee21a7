"""`edge check recipe` reports all faults of a recipe together."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main

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


def test_recipes_check_is_the_same_command(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps({"steps": [STEP, {"name": "End"}], "transitions": [LEAVING]}))
    answer = CliRunner().invoke(main, ["recipes", "check", str(file)])
    assert (answer.exit_code, answer.output) == (0, f"{file}: no problems\n")
