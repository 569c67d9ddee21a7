"""Findings are printed as text or JSON, and the exit status is that of the worst finding."""

import json

import pytest

from edge.cli.terminal.findings import print_findings
from edge.maintenance.finding import HealthFinding, failing, ok, warning

WELL, SUSPICIOUS, ILL = ok("store", "there"), warning("clock", "fast", "set it"), failing("broker", "gone", "start it")


@pytest.mark.parametrize(("found", "status"), [((WELL,), 0), ((WELL, SUSPICIOUS), 1), ((ILL, SUSPICIOUS, WELL), 2)])
def test_exit_status_is_that_of_the_worst_finding(found: tuple[HealthFinding, ...], status: int) -> None:
    assert print_findings(found, as_json=False) == status


def test_each_finding_has_a_line_and_its_advice_another_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([WELL, failing("broker", "gone\x1b[2J", "start it")], as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "ok       store   there",
        "failing  broker  gone [2J",
        "                 → start it",
    ]


def test_json_output_has_all_findings_and_the_worst_level(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([WELL, SUSPICIOUS], as_json=True)
    assert json.loads(capsys.readouterr().out)["level"] == "warning"
