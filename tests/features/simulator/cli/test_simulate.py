"""`edge simulate` prints the trace of a recipe and reports invalid files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.features.simulator.cli.simulate import simulate
from tests.sfc.recipes import action, chain, wait


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(chain("A B", action("a", "A", "S"))))
    return file


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(simulate, [*map(str, arguments)])


def test_json_output_is_one_object(recipe: Path) -> None:
    result = call(recipe, "--json")
    assert result.exit_code == 0
    trace = json.loads(result.stdout)
    assert trace["final"] == "completed"
    assert [command["action"] for command in trace["commands"]] == ["a"]


def test_text_output_has_one_line_per_event(recipe: Path) -> None:
    result = call(recipe)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "warning: action 'a' is set and never reset: it stays set after the job",
        "     0.000  J1  ▶ A",
        "     0.000  J1    start a #1  a.v1",
        "     0.100  J1  ■ A",
        "     0.100  J1  ▶ B",
        "J1: completed",
    ]


def test_awaited_events_are_named_with_a_script_that_sends_them(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(json.dumps(chain("Scan Done", wait("scan", "Scan", timeout_seconds=5))))
    result = call(file)
    *_, waiting, hint = [line for line in result.stdout.splitlines() if line.startswith("warning: ")]
    assert waiting == "warning: action 'scan' of step 'Scan' waits for an event scan.v1"
    script = tmp_path / "script.json"
    script.write_text(hint.partition("--script FILE: ")[2])
    assert call(file).stdout.splitlines()[-2] == "J1: failed"
    assert call(file, "--script", script).stdout.splitlines()[-1] == "J1: completed"


def test_simulation_of_a_failing_job_ends_with_status_0(recipe: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"default": {"result": "failed", "error": "no air"}}))
    result = call(recipe, "--script", script)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == ["J1: failed", "action 'a' of step 'A' failed: no air"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"steps": [{"name": "A", "x": 1}]}'])
def test_a_faulty_recipe_is_rejected_at_load_with_status_0(tmp_path: Path, text: str) -> None:
    file = tmp_path / "recipe.json"
    file.write_text(text)
    result = call(file, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["final"] == "rejected_at_load"


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100_000])
def test_file_that_is_not_json_ends_with_status_2(tmp_path: Path, text: str) -> None:
    file = tmp_path / "recipe.json"
    file.write_bytes(text.encode("latin-1"))
    result = call(file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not JSON" in result.stderr


def test_example_of_the_reference_page_prints_the_shown_output(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/reference/simulation.md").read_text()
    recipe, script, reported = re.findall(r"```(?:json|text)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "scan.json").write_text(recipe)
    (tmp_path / "day.json").write_text(script)
    assert call(tmp_path / "scan.json", "--script", tmp_path / "day.json").stdout == reported


def test_script_that_is_not_json_ends_with_status_2(recipe: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"horizon": }')
    result = call(recipe, "--script", script)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "script.json: not JSON: Expecting value: line 1 column 13" in result.stderr


def test_script_with_the_wrong_structure_ends_with_status_2(recipe: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"timeline": [{"at": 1}]}')
    result = call(recipe, "--script", script)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "timeline[0]" in result.stderr


def test_missing_file_ends_with_status_2(recipe: Path, tmp_path: Path) -> None:
    assert call(tmp_path / "nothing.json").exit_code == 2
    result = call(recipe, "--script", tmp_path / "nothing.json")
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_the_help_shows_an_example() -> None:
    assert "Example: edge simulate" in call("--help").stdout


def test_live_simulation_shows_the_same_trace_as_a_virtual_one(recipe: Path) -> None:
    arguments = [str(recipe), "--live", "--speed", "5", "--json"]
    # In a process of its own, as it sets up the logs for the whole process.
    edge = [sys.executable, "-m", "edge", "simulate", *arguments]
    result = subprocess.run(edge, capture_output=True, text=True, check=True)
    live, virtual = json.loads(result.stdout), json.loads(call(recipe, "--json").stdout)
    assert result.stderr == ""
    timed = {"commands": [], "steps": [], "end": 0, "until": 0}
    assert live | timed == virtual | timed
    for kind in ("commands", "steps"):
        assert [value | {"t": 0} for value in live[kind]] == [value | {"t": 0} for value in virtual[kind]]


def test_speed_without_live_is_refused(recipe: Path) -> None:
    result = call(recipe, "--speed", "5")
    assert result.exit_code == 2
    assert "--live" in result.stderr


def test_job_without_an_end_has_status_3_when_the_simulation_is_strict(tmp_path: Path) -> None:
    file = tmp_path / "recipe.json"
    ends = {"source": "A", "target": "B", "condition": "go"}
    file.write_text(json.dumps({"steps": [{"name": "A", "initial": True}, {"name": "B"}], "transitions": [ends]}))
    plain, strict = call(file), call(file, "--strict")
    assert (plain.exit_code, strict.exit_code) == (0, 3)
    assert plain.output.splitlines()[-3:] == [
        "J1: running",
        "  step A waits for",
        "    A → B [go] waits for go: go: no value yet",
    ]
