"""`edge rules`: checks and shows rules, and runs them over recorded samples in virtual time."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table
from rich.text import Text as RichText

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import did_you_mean, print_json, print_text, printable, usage_failure
from edge.cli.terminal.store_access import FILE, CommandOutput, StoreAccess, json_option, read_bytes, store_command
from edge.cli.terminal.table import plain_table, wide_option
from edge.features.telemetry.definitions import KnownRule, combine, load_sent_rules, read_rules
from edge.features.telemetry.model.rule import LimitRule, Rule
from edge.features.telemetry.rules.evaluator import replay
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.features.telemetry.rules.subject_state import Finding
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.json_value import read_json_text
from edge.ports.sample_lines import read_lines
from edge.store.stream_of_samples import read_counters


def as_data(known: KnownRule, raised: int) -> dict[str, Any]:
    """Return a rule in the form of its file, with its origin and how often it raised a finding."""
    return {"origin": known.origin.value, "raised": raised, "rule": msgspec.to_builtins(known.rule)}


def table(known: Iterable[KnownRule], raised: Mapping[str, int]) -> Table:
    """Return rules as a table."""
    fitted_table = plain_table("rule", "kind", "of", "severity", "raised", "from", empty="no rules: telemetry is off")
    for known_rule in known:
        rule = known_rule.rule
        severity = "–".join(map(str, _severities(rule)))
        cells = (rule.id, _kind(rule), _subject(rule), severity, raised.get(rule.id, 0), known_rule.origin.value)
        fitted_table.add_row(*(RichText(printable(cell)) for cell in cells))
    return fitted_table


def report(known: KnownRule, raised: int) -> Iterator[str]:
    """Yield the report of a rule, line by line; its JSON is that of a file of rules."""
    yield f"from    {known.origin.value}"
    yield f"raised  {raised}"
    yield json.dumps([msgspec.to_builtins(known.rule)], ensure_ascii=False, indent=2)


def _kind(rule: Rule) -> str:
    return str(msgspec.to_builtins(rule)["kind"])


def _subject(rule: Rule) -> str:
    return next(str(found) for name in ("tag", "pattern", "when") if (found := getattr(rule, name, None)) is not None)


def _severities(rule: Rule) -> tuple[int, ...]:
    """Return the least and the largest severity of a rule; one where they are the same."""
    found = {rule.severity}
    if isinstance(rule, LimitRule):
        levels = (rule.limits.high_high, rule.limits.high, rule.limits.low, rule.limits.low_low)
        found = {level.severity or rule.severity for level in levels if level is not None}
    known = sorted(number for number in found if number is not None)
    return tuple(dict.fromkeys((known[0], known[-1]))) if known else ()


@click.group(cls=CommandGroup)
def rules() -> None:
    """Check and show rules, and run them over recorded samples in virtual time."""


@rules.command(epilog="Example: edge rules check hot-tool.json")
@click.argument("file", type=FILE)
@json_option
def check(file: Path, *, as_json: bool) -> None:
    """Check rules.

    FILE holds a list of rules as JSON; - is standard input. Every fault is reported at once, each with the id of its
    rule. The exit status is 0 without faults, else 2.
    """
    found, faults = _read_rules(file)
    if as_json:
        print_json({"file": click.format_filename(file), "rules": len(found), "faults": faults})
    else:
        for fault in faults:
            print_text(fault)
        print_text(f"{file}: {len(faults) or 'no'} problem{'' if len(faults) == 1 else 's'}")
    raise SystemExit(2 if faults else 0)


@rules.command(epilog="Example: edge rules test hot-tool.json monday.jsonl --json")
@click.argument("rules_file", metavar="RULES", type=FILE)
@click.argument("samples_file", metavar="SAMPLES", type=FILE)
@click.option("--until", metavar="MS", type=int, help="End of the virtual time.  [default: the last line]")
@json_option
def test(rules_file: Path, samples_file: Path, until: int | None, *, as_json: bool) -> None:
    """Run rules over recorded samples in virtual time.

    RULES holds a list of rules as JSON, SAMPLES one sample or occurrence per line, in order of time; - is standard
    input. Prints when each rule raises, escalates, eases and clears a finding. A line that cannot be used is reported
    on standard error and set aside. The exit status is 0, or 2 with all faults of the rules.
    """
    found, faults = _read_rules(rules_file)
    if faults:
        usage_failure(*(f"{rules_file}: {fault}" for fault in faults))
    try:
        lines = read_bytes(samples_file).decode("utf-8-sig", "replace").split("\n")
    except OSError as error:
        usage_failure(f"{samples_file}: cannot be read: {error.strerror}")
    inputs = read_lines(lines, lambda number, reason: _report_line(samples_file, number, reason))
    for finding in replay(found, inputs, until):
        _print_finding(finding, as_json=as_json)


@rules.command(epilog="Example: edge rules show torque-drift")
@click.argument("rule_id", metavar="[ID]", required=False)
@wide_option
@store_command
async def show(at: StoreAccess, rule_id: str | None) -> CommandOutput:
    """Show the rules that a gateway evaluates, with how often each raised a finding; or one of them in full.

    They come from the file of the settings, from the MES, commands and station files, and from this software; of one
    id a rule of the station comes before that of the settings, and both before a built-in one.
    """
    known_rules, raised = await _load(at)
    if rule_id is not None:
        ids = [known_rule.rule.id for known_rule in known_rules]
        known_rules = tuple(known_rule for known_rule in known_rules if known_rule.rule.id == rule_id)
        if not known_rules:
            advice = did_you_mean(rule_id, ids, "List the rules: edge rules show")
            raise Refused("unknown_rule", Text.of("there is no rule {rule_id!r}", rule_id=rule_id), advice)
    data = [as_data(known_rule, raised.get(known_rule.rule.id, 0)) for known_rule in known_rules]
    if rule_id is not None:
        return CommandOutput(data, "\n".join(report(known_rules[0], raised.get(rule_id, 0))))
    return CommandOutput(data, table(known_rules, raised))


async def _load(at: StoreAccess) -> tuple[tuple[KnownRule, ...], dict[str, int]]:
    telemetry = at.settings.section(TelemetrySettings)
    if telemetry.mode == "off":
        return (), {}
    sent_rules = await load_sent_rules(at.store)
    counts = await read_counters(at.store)
    prefix = "rule:triggered:"
    raised = {name.removeprefix(prefix): count for name, count in counts.items() if name.startswith(prefix)}
    return combine(read_rules(telemetry.rules), sent_rules.rules), raised


def _read_rules(file: Path) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules of a file and all their faults; a file that cannot be read is one."""
    try:
        return parse_rules(read_json_text(read_bytes(file)))
    except OSError as error:
        return (), (f"cannot be read: {error.strerror}",)
    except Refused as refused:
        return (), (refused.message,)


def _report_line(file: Path, number: int, reason: str) -> None:
    print_text(f"{file}:{number}: line set aside: {reason}", err=True)


def _print_finding(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(finding.as_json(), ensure_ascii=False))
    else:
        at, event = f"{finding.at / 1000:12.3f}", f"{finding.event.value:<9}"
        print_text(f"{at}  {event} {finding.rule}  {finding.subject}  severity {finding.severity}")
