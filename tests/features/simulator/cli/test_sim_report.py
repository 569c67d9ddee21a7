"""The report of a device test is printed as text or as JSON."""

import json

import click
import pytest

from edge.features.simulator.cli.sim import parse_parameters, print_report
from edge.features.simulator.device_check import CheckFinding, Grade

FINDINGS = [
    CheckFinding("start", Grade.OK, "answered with {}"),
    CheckFinding("repeated start", Grade.FAILED, "no \x1b[31m answer"),
]


def test_report_has_a_line_for_each_finding_and_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    print_report("wrench", FINDINGS, passed=False, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "ok      start           answered with {}",
        "failed  repeated start  no  [31m answer",
        "wrench failed",
    ]


def test_report_as_json_has_the_same_findings(capsys: pytest.CaptureFixture[str]) -> None:
    print_report("wrench", FINDINGS[:1], passed=True, as_json=True)
    finding = {"check": "start", "grade": "ok", "detail": "answered with {}"}
    assert json.loads(capsys.readouterr().out) == {"device": "wrench", "passed": True, "findings": [finding]}


def test_parameters_are_a_json_object() -> None:
    assert parse_parameters('{"torque": 85}') == {"torque": 85}
    with pytest.raises(click.UsageError, match="not a JSON object"):
        parse_parameters("[1]")
