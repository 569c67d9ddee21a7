"""Prints findings with their advice, and derives the exit status from the worst."""

from collections.abc import Sequence

import click

from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import print_json
from edge.maintenance.finding import HealthFinding, Level, worst

_STATUS = {Level.OK: 0, Level.WARNING: 1, Level.FAILING: 2}
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
    width = max(len(each.subject) for each in findings)
    for each in findings:
        level = click.style(f"{each.level:<8}", fg=_COLOURS[each.level])
        click.echo(f"{level} {each.subject:<{width}}  {printable(each.found)}")
        if each.advice:
            click.echo(f"{'':9}{'':{width}}  → {printable(each.advice)}")
