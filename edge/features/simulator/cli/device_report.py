"""Prints what the test of a device has found."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import print_json
from edge.features.simulator.device_check import CheckFinding


def parse_parameters(text: str) -> dict[str, Any]:
    """Parse the parameters of a command from JSON."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"--parameters is no JSON object: {error}") from None


def print_report(name: str, findings: Sequence[CheckFinding], *, passed: bool, as_json: bool) -> None:
    """Print one line for each finding, and the verdict."""
    if as_json:
        print_json({"device": name, "passed": passed, "findings": [msgspec.to_builtins(each) for each in findings]})
        return
    width = max(len(each.check) for each in findings)
    for each in findings:
        print_text(f"{each.grade.value:<6}  {each.check:<{width}}  {printable(each.detail)}")
    print_text(f"{name} {'passed' if passed else 'failed'}")
