"""`edge flows` checks, tries and lists; faults and unknown names end it with status 2."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edge.features.flows.cli.flows import flows
from tests.features.flows.documents import flow, node, nodes_of
from tests.features.flows.site_kinds import write_check

CHAIN = flow([node("a", "tag.latest", tag="t"), node("b", "delay", seconds=1)], "a>b")


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return write(tmp_path, CHAIN)


def write(folder: Path, document: object) -> Path:
    file = folder / "flow.json"
    file.write_text(json.dumps(document))
    return file


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(flows, [*map(str, arguments)])


def cycles(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_check_prints_the_structure(chain: Path) -> None:
    result = call("check", chain, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "faults": [],
        "components": [["a", "b"]],
        "entry_nodes": ["a"],
        "order": [["a"], ["b"]],
    }
    assert "flow: no faults, 2 nodes" in call("check", chain).stdout


@pytest.mark.parametrize("command", ["check", "test"])
def test_faults_are_printed_and_end_with_status_2(command: str, tmp_path: Path) -> None:
    file = write(tmp_path, flow([node("a", "merge"), node("b", "merge")], "a>b b>a", cron="x"))
    result = call(command, file, "--json")
    assert result.exit_code == 2
    shown = json.loads(result.stdout)
    assert [(fault["kind"], fault["where"]) for fault in shown["faults"]] == [
        ("invalid_schedule", "schedule"),
        ("cycle", ["a", "b"]),
    ]
    assert (shown["components"], shown["entry_nodes"], shown["order"]) == ([], [], [])
    assert "cycle: a, b: the nodes a, b depend on each other" in call(command, file).stdout


def test_cycles_are_printed_one_per_line(chain: Path, tmp_path: Path) -> None:
    samples = tmp_path / "samples.jsonl"
    samples.write_text('{"at": 0, "tag": "t", "value": 5}\nno json\n{"at": 60000, "tag": "t", "value": 6}\n')
    result = call("test", chain, "--tags", samples, "--cycles", "2", "--json")
    assert [nodes_of(cycle)["b"]["output"] for cycle in cycles(result)] == [5, 6]
    assert "samples.jsonl:2: line set aside" in result.stderr
    assert "  b  completed   5" in call("test", chain, "--tags", samples).stdout


def test_stops_and_terminations_may_be_repeated(tmp_path: Path) -> None:
    file = write(tmp_path, flow([node("a@1", "constant", value=1), node("b", "constant", value=2)]))
    options = ["--stop", "1@0", "--terminate", "a@1@0", "--terminate", "b@1", "--cycles", "2", "--json"]
    first, second = cycles(call("test", file, *options))
    assert [nodes_of(first)[name]["status"] for name in ("a@1", "b")] == ["terminated", "skipped"]
    assert [nodes_of(second)[name]["status"] for name in ("a@1", "b")] == ["completed", "terminated"]


@pytest.mark.parametrize(
    "option",
    [
        ("--stop", "2@0"),
        ("--stop", "a@0"),
        ("--stop", "0"),
        ("--terminate", "x@0"),
        ("--terminate", "a@x"),
        ("--cycles", "0"),
    ],
)
def test_option_with_an_unknown_name_is_refused(chain: Path, option: tuple[str, str]) -> None:
    result = call("test", chain, *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr


@pytest.mark.parametrize("text", ["{", "", "\x00"])
def test_file_that_is_not_json_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "flow.json"
    file.write_text(text)
    assert call("check", file).exit_code == 2


def test_kinds_are_listed_with_their_schemas() -> None:
    shown = {kind["kind"]: kind for kind in json.loads(call("kinds", "--json").stdout)}
    assert shown["delay"]["config"]["$defs"]["DelayConfig"]["additionalProperties"] is False
    assert "mqtt.publish" in call("kinds").stdout


def test_site_node_kinds_are_checked_tried_and_listed(tmp_path: Path) -> None:
    (tmp_path / "kinds").mkdir()
    folder = write_check(tmp_path / "kinds")
    file = write(tmp_path, flow([node("a", "constant", value=[1, 2]), node("b", "site.check")], "a>b"))
    assert call("check", file).exit_code == 2
    assert call("check", file, "--kinds", folder).exit_code == 0
    (cycle,) = cycles(call("test", file, "--kinds", folder, "--json"))
    assert nodes_of(cycle)["b"]["output"] == 3
    listed = json.loads(call("kinds", "--kinds", folder, "--json").stdout)
    assert next(value for value in listed if value["kind"] == "site.check")["in_worker"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return 1 / 0", "ZeroDivisionError"),
        ("return Output(object())", "not JSON"),
        ("x = []; x.append(x); return Output(x)", "not JSON"),
        ("return Output(float('nan'))", "not JSON"),
        ("return None", "returned NoneType"),
        ("raise SystemExit(3)", "SystemExit"),
    ],
)
def test_defect_of_a_site_node_kind_fails_its_node(tmp_path: Path, body: str, reason: str) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "bad.py").write_text(
        "from edge.features.flows.nodes.kind import Compute, Inputs, NodeConfig, NodeKind, Output\n"
        f"class Bad(NodeConfig, frozen=True): ...\ndef run(config, attempt):\n    {body}\n"
        "KIND = NodeKind('site.bad', 'Bad.', Bad, Inputs.NONE, Compute(run))\n"
    )
    file = write(tmp_path, flow([node("a", "site.bad")]))
    (cycle,) = cycles(call("test", file, "--kinds", tmp_path / "kinds", "--json"))
    assert cycle["status"] == "failed"
    assert reason in nodes_of(cycle)["a"]["reason"]
