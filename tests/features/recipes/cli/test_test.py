"""`edge recipes test` on a folder of station files and on the store."""

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.features.recipes.cli.test import junit_xml
from edge.features.recipes.recipe_tests import RecipeTestResult
from tests.cli.calling import Edge
from tests.sfc.recipes import action, chain

RECIPE = chain("A B", action("a", "A"))
GOOD = {"id": "good day", "work_master": "fit", "end": "completed", "verdict": "ok"}
BAD = {"id": "broken tool", "work_master": "fit", "script": {"default": {"result": "failed"}}, "end": "failed"}


PAGE = Path("docs/how-to/test-a-recipe.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Station files with a recipe and two tests that it passes."""
    masters = tmp_path / "scopes" / "station-1" / "workmasters"
    masters.mkdir(parents=True)
    (masters / "fit.json").write_text(json.dumps(RECIPE), encoding="utf-8")
    (tmp_path / "recipe-tests").mkdir()
    (tmp_path / "recipe-tests" / "fit.json").write_text(json.dumps([GOOD, BAD]), encoding="utf-8")
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["recipes", "test", *map(str, arguments)])


def test_green_folder_exits_with_0_and_writes_junit(folder: Path) -> None:
    answer = call(folder, "--junit", folder / "out.xml")
    assert (answer.exit_code, "2 tests, 0 failed" in answer.stdout) == (0, True), answer.output
    written = (folder / "out.xml").read_text(encoding="utf-8")
    assert ET.fromstring(written).get("tests") == "2"  # noqa: S314 - our own
    assert CliRunner().invoke(main, ["check", "station", str(folder)]).exit_code == 0


def test_failed_test_exits_with_1_and_its_reason(folder: Path) -> None:
    (folder / "recipe-tests" / "fit.json").write_text(json.dumps([GOOD | {"end": "failed"}]), encoding="utf-8")
    answer = call(folder)
    assert answer.exit_code == 1
    assert "FAILED fit: good day\n       the job ends as completed, expected failed" in answer.stdout
    (result,) = json.loads(call(folder, "--json").stdout)["tests"]
    assert (result["passed"], result["id"]) == (False, "good day")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([GOOD | {"workmaster": 1}], "unknown field `workmaster`"),
        ([GOOD | {"work_master": "other"}], "unknown Work Master 'other'"),
        ([], "there is no test"),
    ],
)
def test_folder_with_a_fault_exits_with_2(folder: Path, content: object, words: str) -> None:
    (folder / "recipe-tests" / "fit.json").write_text(json.dumps(content), encoding="utf-8")
    answer = call(folder)
    assert answer.exit_code == 2
    assert words in answer.stderr


async def test_stored_tests_run_with_the_released_recipes(edge: Edge) -> None:
    release = ("recipes", "release", "-", "--id", "fit", "--reason", "first")
    assert (await edge(*release, given=json.dumps(RECIPE))).exit_code == 0
    assert (await edge("station", "set", "recipetest", "-", given=json.dumps([GOOD, BAD]))).exit_code == 0
    assert "2 tests, 0 failed" in (await edge("recipes", "test")).stdout
    broken = json.dumps(RECIPE | {"verdict": "false"})
    refused = await edge(*release, given=broken)
    assert refused.exit_code == 1
    assert "the tests fail: good day: the verdict of J1 is 'not_ok', expected 'ok'" in refused.stderr


def test_page_shows_the_tests_and_what_the_command_prints(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    station = folder / "station.d"
    (folder / "scopes").rename(station.with_name("moved"))
    station.mkdir()
    station.with_name("moved").rename(station / "scopes")
    recipe = chain("Fit Done", action("fit", "Fit", type_id="com.example.fit.v1"))
    (station / "scopes" / "station-1" / "workmasters" / "fit.json").write_text(json.dumps(recipe), encoding="utf-8")
    (content,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (station / "recipe-tests").mkdir()
    (station / "recipe-tests" / "fit.json").write_text(content, encoding="utf-8")
    monkeypatch.chdir(folder)
    (command,) = re.findall(r"```sh\nedge (.*?)\n```", PAGE)
    answer = CliRunner().invoke(main, shlex.split(command))
    (shown,) = re.findall(r"```\n(ok .*?)```", PAGE, re.DOTALL)
    assert answer.stdout == shown, answer.output


PASSED = RecipeTestResult(id="good day", work_master='A "<&>"', reasons=(), end="completed", seconds=12.5)
FAILED = RecipeTestResult(id="bad\x00 day", work_master="B", reasons=("the job ends as <failed>", "& waits"))


def test_each_work_master_is_a_suite_with_its_failures() -> None:
    root = ET.fromstring(junit_xml([PASSED, FAILED]))  # noqa: S314 - our own
    assert root.attrib == {"name": "recipes", "tests": "2", "failures": "1"}
    assert [(suite.get("name"), suite.get("failures")) for suite in root] == [('A "<&>"', "0"), ("B", "1")]
    cases = [(case.get("name"), case.get("time")) for case in root.iter("testcase")]
    assert cases == [("good day", "12.500"), ("bad  day", None)]
    assert [failure.text for failure in root.iter("failure")] == ["the job ends as <failed>; & waits"]
