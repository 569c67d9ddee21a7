"""Findings are printed as text or JSON, and the exit status is that of the worst finding."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from edge.cli.terminal.output import print_findings
from edge.model.finding import HealthFinding, failing, ok, warning

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


LONG = """
from edge.cli.terminal.output import print_findings
from edge.model.finding import failing
found = "command J1/0f8fad5b-d9cb-469f-a165-70867728950e/tighten/1 has no answer, and the tool may still be active"
print_findings([failing("equipment wrench of gw1", found, "Make it safe by hand, then call: edge equipment release")],
               as_json=False)
"""


def test_finding_continues_below_itself_on_a_narrow_terminal() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    subprocess.run([sys.executable, "-c", LONG], stdout=theirs, check=True, timeout=60, env=environment)
    os.close(theirs)
    lines = os.read(ours, 10_000).decode().replace("\x1b[31m", "").replace("\x1b[0m", "").splitlines()
    os.close(ours)
    assert len(lines) > 3
    assert max(map(len, lines)) <= 90
    assert any("J1/0f8fad5b-d9cb-469f-a165-70867728950e/tighten/1" in line for line in lines)
    assert {line[:34].strip() for line in lines[1:]} <= {"", "→"}
