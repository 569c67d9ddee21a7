"""Prints what the test of a device has found."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from edge.cli.terminal.output import print_json, print_text, printable
from edge.features.simulator.device_check import CheckFinding


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse the parameters of a command from JSON."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"--parameters is not a JSON object: {error}") from None


def print_report(name: str, findings: Sequence[CheckFinding], *, passed: bool, as_json: bool) -> None:
    """Print one line for each finding, and the verdict."""
    if as_json:
        print_json(
            {"device": name, "passed": passed, "findings": [msgspec.to_builtins(finding) for finding in findings]}
        )
        return
    width = max(len(finding.check) for finding in findings)
    for check_finding in findings:
        print_text(f"{check_finding.grade.value:<6}  {check_finding.check:<{width}}  {printable(check_finding.detail)}")
    print_text(f"{name} {'passed' if passed else 'failed'}")
