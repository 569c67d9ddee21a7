"""Replays recorded samples through rules in virtual time, and returns their findings in order."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rules.evaluator import OrderedFinding, RuleEvaluator
from edge.features.telemetry.rules.finding import Finding
from edge.ports.sample_lines import Line

_Placed: TypeAlias = tuple[int, OrderedFinding]
"""A finding with the number of its input; a timer has that of the input before it."""


def replay(rules: Iterable[Rule], inputs: Iterable[Line], until: int | None) -> Iterator[Finding]:
    """Yield the findings of inputs in order of time, up to and including `until` (default: the last input).

    Findings of one instant are sorted by rule, then by input, then by the name of the subject.
    """
    evaluator: RuleEvaluator | None = None
    waiting: list[_Placed] = []
    last = 0
    for number, given in enumerate(inputs, 1):
        if until is not None and given.at > until:
            break
        if evaluator is None:
            evaluator = RuleEvaluator(rules, given.at)
        last = given.at
        waiting += [(number - 1, found) for found in evaluator.run_until(given.at)]
        yield from _take_before(waiting, given.at)
        waiting += [(number, found) for found in evaluator.feed(given)]
    if evaluator is not None:
        waiting += [(number, found) for found in evaluator.run_until(last if until is None else until)]
    yield from _take_before(waiting, None)


def _take_before(waiting: list[_Placed], at: int | None) -> Iterator[Finding]:
    """Remove and yield the findings before an instant, in order; a later input may still add to that instant."""
    waiting.sort(key=_order)
    count = sum(at is None or found.finding.at < at for _, found in waiting)
    yield from (found.finding for _, found in waiting[:count])
    del waiting[:count]


def _order(placed: _Placed) -> tuple[int, int, int, str]:
    number, found = placed
    return found.finding.at, found.rule_number, number, found.finding.subject
