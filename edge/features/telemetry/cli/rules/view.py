"""Formats rules: as a table, as a report and as data."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import plain_table
from edge.features.telemetry.definitions import KnownRule
from edge.features.telemetry.model.rule import LimitRule, Rule


def as_data(known: KnownRule, raised: int) -> dict[str, Any]:
    """Return a rule in the form of its file, with its origin and how often it raised a finding."""
    return {"origin": known.origin.value, "raised": raised, "rule": msgspec.to_builtins(known.rule)}


def table(known: Iterable[KnownRule], raised: Mapping[str, int]) -> Table:
    """Return rules as a table."""
    found = plain_table("rule", "kind", "of", "severity", "raised", "from")
    for known_rule in known:
        rule = known_rule.rule
        severity = "–".join(map(str, _severities(rule)))
        cells = (rule.id, _kind(rule), _subject(rule), severity, raised.get(rule.id, 0), known_rule.origin.value)
        found.add_row(*(Text(printable(cell)) for cell in cells))
    return found


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
