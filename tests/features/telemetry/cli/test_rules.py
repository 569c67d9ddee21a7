"""`edge rules` checks rules and runs them over samples."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edge.app.features import settings_kinds
from edge.cli import main
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from tests.cli.calling import Edge

HOT = {
    "id": "hot",
    "kind": "limit",
    "tag": "wrench.temp",
    "limits": {"high": {"at": 80, "severity": 500}},
    "on_delay_seconds": 10,
}
LINES = """\
{"at": 2000, "tag": "wrench.temp", "value": 81.5, "quality": "good"}

{"at": 1000, "tag": "wrench.temp", "value": 1}
{"at": 3000, "tag": "wrench.temp", "value": NaN}
no JSON
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.json").write_text(json.dumps([HOT]))
    (tmp_path / "samples.jsonl").write_text(LINES)
    return tmp_path


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["rules", *map(str, arguments)])


def test_findings_are_printed_one_per_line(folder: Path) -> None:
    result = call("test", folder / "rules.json", folder / "samples.jsonl", "--until", "12000", "--json")
    assert result.exit_code == 0
    assert result.stdout == (
        '{"at": 12000, "rule": "hot", "subject": "wrench.temp", "event": "raised", "severity": 500}\n'
    )


def test_skipped_lines_are_reported_once_with_status_0(folder: Path) -> None:
    result = call("test", folder / "rules.json", folder / "samples.jsonl", "--json")
    assert (result.exit_code, result.stdout) == (0, "")
    numbers = [line.split(":")[1] for line in result.stderr.splitlines()]
    assert numbers == ["3", "5"]


def test_findings_are_printed_as_text(folder: Path) -> None:
    result = call("test", folder / "rules.json", folder / "samples.jsonl", "--until", "12000")
    assert result.stdout == "      12.000  raised    hot  wrench.temp  severity 500\n"


def test_faulty_rules_end_with_status_2_and_all_faults(folder: Path) -> None:
    (folder / "rules.json").write_text(json.dumps([HOT | {"colour": 1, "hysteresis": -1}, HOT]))
    result = call("test", folder / "rules.json", folder / "samples.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 3
    assert all("'hot'" in line for line in result.stderr.splitlines())


def test_faulty_rules_of_a_test_with_json_are_an_error_in_json(folder: Path) -> None:
    """They were text on standard error, and standard output was empty."""
    (folder / "rules.json").write_text(json.dumps([HOT | {"colour": 1, "hysteresis": -1}, HOT]))
    result = call("test", folder / "rules.json", folder / "samples.jsonl", "--json")
    assert (result.exit_code, result.stderr) == (2, "")
    error = json.loads(result.stdout)
    assert (error["kind"], len(error["reason"].splitlines())) == ("invalid_arguments", 3)


def test_check_reports_faults_with_status_2(folder: Path) -> None:
    (folder / "rules.json").write_text('[{"id": "a", "kind": "rate", "tag": "t", "severity": 1}]')
    result = call("check", folder / "rules.json")
    assert result.exit_code == 2
    assert result.stdout.splitlines()[0] == "rule 'a': missing member 'per_second'"
    answer = json.loads(call("check", folder / "rules.json", "--json").stdout)
    assert answer["faults"] == ["rule 'a': missing member 'per_second'"]


def test_check_of_valid_rules_ends_with_status_0(folder: Path) -> None:
    result = call("check", folder / "rules.json")
    assert (result.exit_code, result.stdout) == (0, f"{folder / 'rules.json'}: no problems\n")


@pytest.mark.parametrize("text", ["", "{", "{}", "5"])
def test_file_without_rules_is_a_fault(folder: Path, text: str) -> None:
    (folder / "rules.json").write_text(text)
    assert call("check", folder / "rules.json").exit_code == 2
    assert call("test", folder / "rules.json", folder / "samples.jsonl").exit_code == 2


def test_missing_files_end_with_status_2(folder: Path) -> None:
    assert call("check", folder / "absent.json").exit_code == 2
    assert call("test", folder / "rules.json", folder / "absent.jsonl").exit_code == 2


async def test_rules_that_a_gateway_evaluates_are_shown_with_their_origin(edge: Edge, store: Store) -> None:
    await StationSettings(store, settings_kinds()).apply(
        "s", "rule", SettingsMethod.PUT, [HOT, HOT | {"id": "gateway.job_aborted"}]
    )
    await store.execute("HSET", store.keys.telemetry_counters(), "rule:triggered:hot", "3")
    shown = {load["rule"]["id"]: load for load in json.loads((await edge("rules", "show", "--json")).output)}
    assert (shown["hot"]["origin"], shown["hot"]["raised"]) == ("station", 3)
    assert shown["gateway.job_aborted"]["origin"] == "station"
    assert (shown["gateway.step_overdue"]["origin"], shown["gateway.step_overdue"]["raised"]) == ("built-in", 0)
    listed = (await edge("rules", "show")).output
    assert all(word in listed for word in ("hot", "wrench.temp", "500", "station", "occurs", "step.overdue"))


async def test_rule_is_shown_in_the_format_of_its_file(edge: Edge, store: Store) -> None:
    await StationSettings(store, settings_kinds()).apply("s", "rule", SettingsMethod.PUT, [HOT])
    lines = (await edge("rules", "show", "hot")).output.splitlines()
    rules, faults = parse_rules(json.loads("\n".join(lines[2:])))
    assert (lines[0].split(), lines[1].split(), rules, faults) == (
        ["from", "station"],
        ["raised", "0"],
        *parse_rules([HOT]),
    )
    assert (await edge("rules", "show", "cold")).exit_code == 1
    assert "Did you mean 'hot'? List the rules: edge rules show" in (await edge("rules", "show", "hto")).stderr
