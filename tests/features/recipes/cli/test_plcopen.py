"""`edge recipes import` and `export` read and write files of PLC tools."""

import json
from pathlib import Path

from click.testing import CliRunner, Result

from edge.cli import main
from tests.cli.calling import Edge
from tests.features.recipes.plcopen.drawn import block, chart, does, element, initial, step, when

GOOD = chart(initial(1, "Wait"), when(2, "go", 1), step(3, "End", 2), block(4, 1, does("Weld")))
WAY = {"source": "A", "target": "B", "condition": "coalesce(go, true)"}
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
    answer = read(BAD, tmp_path, "--json")
    assert (answer.exit_code, answer.stderr) == (2, "")
    printed = json.loads(answer.stdout)
    assert [fault["local_id"] for fault in printed["faults"]] == [2, 4]
    assert "recipe" not in printed


def test_files_that_cannot_be_read_end_with_status_2(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["recipes", "import", str(tmp_path / "missing.xml")])
    assert (answer.exit_code, "cannot be read" in answer.stderr) == (2, True)
    wrong = tmp_path / "map.json"
    for text in ("[]", "{"):
        wrong.write_text(text)
        assert read(GOOD, tmp_path, "--map", wrong).exit_code == 2


RECIPE = {"steps": [{"name": "A", "initial": True}, {"name": "B"}], "transitions": [WAY]}


def export(data: object, folder: Path, *options: str | Path) -> Result:
    """Call `edge recipes export --plcopen` with a recipe."""
    file = folder / "press.json"
    file.write_text(json.dumps(data))
    return CliRunner().invoke(main, ["recipes", "export", str(file), "--plcopen", *map(str, options)])


def test_an_export_is_imported_as_the_same_recipe(tmp_path: Path) -> None:
    printed = export(RECIPE, tmp_path)
    assert printed.exit_code == 0
    assert '<pou name="press"' in printed.stdout
    assert json.loads(read(printed.stdout_bytes, tmp_path, "--json").stdout) == {"recipe": RECIPE, "warnings": []}


def test_an_export_may_go_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "press.xml"
    assert (export(RECIPE, tmp_path, "-o", target).output, target.read_bytes()[:5]) == ("", b"<?xml")
    assert export(RECIPE, tmp_path, "-o", tmp_path / "missing" / "press.xml").exit_code == 2


def test_a_recipe_with_faults_is_not_exported(tmp_path: Path) -> None:
    answer = export({"steps": [{"name": "A"}]}, tmp_path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "exactly one step must be initial" in answer.stderr
    assert CliRunner().invoke(main, ["recipes", "export", "x.json"]).exit_code == 2


async def test_the_recipe_of_a_work_master_is_exported(edge: Edge, tmp_path: Path) -> None:
    file = tmp_path / "press.json"
    file.write_text(json.dumps(RECIPE))
    assert (await edge("station", "set", "workmaster", file, "--id", "PRESS-1")).exit_code == 0
    answer = await edge("recipes", "export", "--stored", "PRESS-1", "--plcopen")
    assert '<pou name="PRESS_1"' in answer.stdout
    unknown = await edge("recipes", "export", "--stored", "other", "--plcopen")
    assert (unknown.exit_code, "Work Master 'other' is not known" in unknown.stderr) == (1, True)


async def test_export_needs_one_recipe(edge: Edge) -> None:
    assert (await edge("recipes", "export", "--plcopen")).exit_code == 2
    assert (await edge("recipes", "export", "x.json", "--stored", "PRESS-1", "--plcopen")).exit_code == 2
