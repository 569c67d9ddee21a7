"""`edge check` reports all faults of a file together."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.cli.files import compiled_or_exit
from edge.config.sections import NAME_EXPECTED
from tests.station.plant import LINEAR


def check(*arguments: str | Path) -> Result:
    """Call `edge check`."""
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.toml"
    file.write_text('[gateway]\nname = "line-4"\n')
    return file


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "bad.toml"
    file.write_text("[redis]\nulr = 'x'\nprefix = 3\n")
    return file


def test_good_settings_have_no_problems(good: Path) -> None:
    answer = check("settings", good)
    assert (answer.exit_code, answer.output) == (0, f"{good}: no problems\n")


def test_bad_settings_report_every_problem_and_end_with_status_2(bad: Path) -> None:
    answer = check("settings", bad)
    assert answer.exit_code == 2
    assert answer.output.splitlines() == [
        f"{bad}: redis.ulr: there is no such key; did you mean url?",
        f"{bad}: redis.prefix: expected {NAME_EXPECTED}, got a whole number",
        f"{bad}: 2 problems",
    ]


def test_environment_variables_are_checked(good: Path) -> None:
    answer = CliRunner().invoke(main, ["check", "settings", str(good)], env={"EDGE_LOGGING__LEVEL": "loud"})
    assert answer.exit_code == 2
    assert "environment EDGE_LOGGING__LEVEL" in answer.output


def test_check_prints_json_on_request(good: Path, bad: Path) -> None:
    assert json.loads(check("settings", good, "--json").output) == {
        "file": str(good),
        "faults": [],
        "warnings": [],
    }
    answer = check("settings", bad, "--json")
    assert answer.exit_code == 2
    assert len(json.loads(answer.output)["faults"]) == 2


@pytest.mark.parametrize("kind", ["settings", "recipe"])
def test_a_missing_file_is_reported(kind: str, tmp_path: Path) -> None:
    answer = check(kind, tmp_path / "none")
    assert answer.exit_code == 2
    assert str(tmp_path / "none") in answer.output


@pytest.mark.parametrize("kind", ["settings", "recipe"])
def test_help_has_an_example(kind: str) -> None:
    assert f"Example: edge check {kind} " in check(kind, "--help").output


def test_valid_recipe_is_compiled() -> None:
    assert compiled_or_exit(LINEAR).initial == "one"


def test_faults_are_printed_and_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        compiled_or_exit({})
    assert ended.value.code == 2
    assert "edge: " in capsys.readouterr().err
