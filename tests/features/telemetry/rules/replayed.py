"""Replays short tables of samples through rules."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from edge.features.telemetry.rules.evaluator import replay
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.ports import sample_lines
from edge.ports.sample_lines import Occurrence, Quality, Sample

Line: TypeAlias = tuple[Any, ...]
"""(at, tag, value[, quality]), or (at, occurrence[, job]) with `!` before its name."""
Row: TypeAlias = tuple[int, str, str, str, int]


def inputs(lines: Iterable[Line]) -> list[sample_lines.Line]:
    """Return the inputs of a table."""
    return [_input(*line) for line in lines]


def _input(at: int, name: str, *rest: Any) -> sample_lines.Line:
    if name.startswith("!"):
        return Occurrence(at, name[1:], rest[0] if rest else None, None)
    value, *quality = rest
    return Sample(at, name, value, Quality(quality[0]) if quality else Quality.GOOD)


def run(rules: dict[str, Any] | list[dict[str, Any]], lines: Iterable[Line], until: int | None = None) -> list[Row]:
    """Return (at, rule, subject, event, severity) of each finding; a rule needs no id and no severity here."""
    given = [rules] if isinstance(rules, dict) else rules
    parsed, faults = parse_rules([{"id": f"r{n}", "severity": 500} | rule for n, rule in enumerate(given)])
    assert faults == ()
    return [
        (finding.at, finding.rule, finding.subject, finding.event.value, finding.severity)
        for finding in replay(parsed, inputs(lines), until)
    ]


def events(rules: dict[str, Any] | list[dict[str, Any]], lines: Iterable[Line], until: int | None = None) -> list[Any]:
    """Return (at, event) of each finding, with the severity where it is not 500."""
    return [
        (at, event) if severity == 500 else (at, event, severity)
        for at, _, _, event, severity in run(rules, lines, until)
    ]
