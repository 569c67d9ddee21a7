"""Prints findings with their advice, and derives the exit status from the worst."""

from collections.abc import Sequence

import click

from edge.cli.terminal.output import wrapped
from edge.cli.terminal.store_access import print_json
from edge.model.finding import HealthFinding, Level, worst

_STATUS = {Level.OK: 0, Level.WARNING: 1, Level.FAILING: 2}
_LEVEL_WIDTH = 8
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILING: "red"}


def print_findings(findings: Sequence[HealthFinding], *, as_json: bool) -> int:
    """Print findings as text or JSON; return the exit status."""
    level = worst(findings)
    if as_json:
        print_json({"level": level, "findings": findings})
    else:
        _print(findings)
    return _STATUS[level]


def _print(findings: Sequence[HealthFinding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    indent = _LEVEL_WIDTH + width + 3
    for item in findings:
        level = click.style(f"{item.level:<{_LEVEL_WIDTH}}", fg=_COLOURS[item.level])
        click.echo(f"{level} {item.subject:<{width}}  {wrapped(item.found, indent)}")
        if item.advice:
            click.echo(f"{'':{indent}}→ {wrapped(item.advice, indent + 2)}")
