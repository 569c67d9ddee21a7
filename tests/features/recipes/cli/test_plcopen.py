"""`edge recipes import` prints the recipe of a PLC file, or all its faults."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from edge.cli import main
from tests.features.recipes.plcopen.drawn import block, chart, does, element, initial, step, when

GOOD = chart(initial(1, "Wait"), when(2, "go", 1), step(3, "End", 2), block(4, 1, does("Weld")))
BAD = chart(initial(1, "Wait"), when(2, "f(x)", 1), step(3, "End", 2), element("macroStep", 4))


def read(data: bytes, folder: Path, *options: str | Path) -> Result:
    """Call `edge recipes import` with a file."""
    file = folder / "plc.xml"
    file.write_bytes(data)
    return CliRunner().invoke(main, ["recipes", "import", str(file), *map(str, options)])


def test_the_recipe_is_printed_and_passes_the_check(tmp_path: Path) -> None:
    answer = read(GOOD, tmp_path)
    assert answer.exit_code == 0
    checked = CliRunner().invoke(main, ["check", "recipe", "-"], input=answer.stdout)
    assert checked.output.endswith("-: no problems\n")
    assert "warning: localId 4, Weld, line 8: the map does not name the action" in answer.stderr


def test_json_has_the_recipe_and_the_warnings(tmp_path: Path) -> None:
    mapped = tmp_path / "map.json"
    mapped.write_text('{"weld": {"type_id": "com.example.weld.v1"}}')
    printed = json.loads(read(GOOD, tmp_path, "--json", "--map", mapped, "--defaults", "--pou", "main").stdout)
    assert list(printed) == ["recipe", "warnings"]
    assert printed["recipe"]["actions"][0]["type_id"] == "com.example.weld.v1"
    assert printed["recipe"]["transitions"][0]["condition"] == "coalesce(go, false)"
    assert printed["warnings"][0].keys() == {"message", "local_id", "name", "line"}


def test_all_faults_are_reported_with_status_2_and_no_recipe(tmp_path: Path) -> None:
    answer = read(BAD, tmp_path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.splitlines() == [
        "edge: localId 2, line 6: the call f(…) is not carried over",
        "edge: localId 4, line 8: macroStep is not carried over: it has no form in a recipe",
    ]
    printed = json.loads(read(BAD, tmp_path, "--json").stdout)
    assert [fault["local_id"] for fault in printed["faults"]] == [2, 4]
    assert "recipe" not in printed


def test_files_that_cannot_be_read_end_with_status_2(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["recipes", "import", str(tmp_path / "missing.xml")])
    assert (answer.exit_code, "cannot be read" in answer.stderr) == (2, True)
    wrong = tmp_path / "map.json"
    for text in ("[]", "{"):
        wrong.write_text(text)
        assert read(GOOD, tmp_path, "--map", wrong).exit_code == 2
