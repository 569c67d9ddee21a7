"""`edge check recipe`: finds every fault of a recipe, what stands still, and what no run does."""

import codecs
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from msgspec import Struct

from edge.app.features import recipe_checks, result_members
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import FILE, json_option, read_bytes
from edge.features.recipes.check import CheckResult, check_net
from edge.features.recipes.finding import FindingLevel
from edge.features.recipes.positions import NO_POSITIONS, Positions, positions_of
from edge.features.recipes.public_finding import PublicFinding, public_findings
from edge.foundation.errors import Refused
from edge.model.json_value import read_json_text
from edge.sfc.compiler import RejectedRecipe, compile_recipe


class _Report(Struct, frozen=True):
    """What is printed about a file."""

    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    findings: Sequence[PublicFinding] = ()
    is_complete: bool = True

    def faults(self, *, strict: bool) -> int:
        """Count what forbids a release."""
        levels = {FindingLevel.FAULT, FindingLevel.WARNING} if strict else {FindingLevel.FAULT}
        stated = len(self.problems) + (len(self.warnings) if strict else 0)
        return stated + sum(item.level in levels for item in self.findings)


@click.command(epilog="Example: edge check recipe rear-axle.json")
@click.argument("file", type=FILE)
@click.option("--strict", is_flag=True, help="Treat warnings as faults.")
@json_option
def recipe(file: Path, *, strict: bool, as_json: bool) -> None:
    """Check an SFC recipe.

    FILE contains the recipe as JSON; - is standard input. All that can become of a job is explored, with every outcome
    of every action and whatever the data. A fault is a recipe that cannot be read, or a step at which a job can stand
    still for ever. Warnings name parts that no run uses, and failures that nothing handles. With --json each finding
    has a script for `edge simulate` that shows it, where one can. The exit status is 0 without a fault, else 2.
    """
    report = _report(file)
    if as_json:
        _print_json(file, report)
    else:
        _print_text(file, report, strict=strict)
    _exit(report, strict=strict)


def _report(file: Path) -> _Report:
    try:
        text = read_bytes(file)
        data = read_json_text(text)
    except OSError as error:
        return _Report([f"cannot be read: {error.strerror}"])
    except Refused as refused:
        return _Report([str(refused.message)])
    net = compile_recipe(data, checks=recipe_checks())
    if isinstance(net, RejectedRecipe):
        return _Report(net.faults)
    result = check_net(net, result_members())
    return _Report(
        (), _others(net.warnings, result), public_findings(result.findings, _positions(text)), result.is_complete
    )


def _positions(text: bytes) -> Positions:
    try:
        return positions_of(text.removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, IndexError, RecursionError):
        return NO_POSITIONS


def _others(warnings: Sequence[str], result: CheckResult) -> Sequence[str]:
    """Return the warnings of the load that no finding repeats: a transition that never clears."""
    if not result.is_complete:
        return warnings
    return [text for text in warnings if " never clears: " not in text and " never leads to " not in text]


def _print_json(file: Path, report: _Report) -> None:
    content: dict[str, Any] = {
        "file": click.format_filename(file),
        "faults": report.problems,
        "problems": report.problems,
        "warnings": report.warnings,
        "findings": report.findings,
        "bounded": not report.is_complete,
    }
    print_json(content)


def _print_text(file: Path, report: _Report, *, strict: bool) -> None:
    for problem in report.problems:
        print_text(problem)
    for warning in report.warnings:
        print_text(f"warning: {warning}")
    for item in report.findings:
        place = f", line {item.line}, column {item.column}" if item.line else ""
        print_text(f"{item.level}: {item.message} ({item.kind}{place})")
        print_text(f"    {item.remedy}")
    if not report.is_complete:
        print_text("information: the recipe has more states than the check explores: it may have further faults")
    faults = report.faults(strict=strict)
    print_text(f"{file}: {faults or 'no'} problem{'' if faults == 1 else 's'}")


def _exit(report: _Report, *, strict: bool) -> NoReturn:
    raise SystemExit(2 if report.faults(strict=strict) else 0)
