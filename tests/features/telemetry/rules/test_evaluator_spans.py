"""Rules that count from one occurrence to another."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule, Span
from edge.features.telemetry.rules.evaluator import RuleEvaluator
from edge.features.telemetry.rules.subject import RunningJobs
from edge.ports.sample_lines import Occurrence, Sample
from tests.features.telemetry.rules.replayed import events, run

IN_STATION: dict[str, Any] = {"while": {"after": "carriers.entered", "until": "carriers.left*"}}
HOT: dict[str, Any] = {"kind": "limit", "tag": "t", "limits": {"high": {"at": 80}}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([(0, "t", 81), (9, "!job.started", "J"), (10, "t", 81)], [], id="a job does not begin it"),
        pytest.param([(0, "!carriers.entered", "C"), (1, "t", 81)], [(1, "raised")], id="a value in it counts"),
        pytest.param(
            [(0, "!carriers.entered", "C"), (1, "t", 81), (2, "!carriers.left.early", "C"), (3, "t", 99)],
            [(1, "raised"), (2, "cleared")],
            id="its end clears the finding",
        ),
        pytest.param(
            [(0, "!carriers.left", "C"), (1, "!carriers.entered", "C"), (2, "!carriers.entered", "D"), (3, "t", 81)],
            [(3, "raised")],
            id="an end without a beginning, and a second beginning, change nothing",
        ),
        pytest.param(
            [(0, "!carriers.entered", "C"), (1, "t", 81), (2, "!job.started", "J"), (3, "!job.ended", "J")],
            [(1, "raised")],
            id="the end of a job does not end it",
        ),
    ],
)
def test_rule_counts_between_two_occurrences(lines: list[Any], expected: list[tuple[int, str]]) -> None:
    assert [(at, event) for at, _, _, event, _ in run(HOT | IN_STATION | {"id": "r"}, lines)] == expected


def test_silence_counts_from_the_beginning_of_the_span() -> None:
    rule = {"kind": "stale", "tag": "t", "seconds": 1, "id": "r"} | IN_STATION
    lines = [(0, "t", 1), (5_000, "!carriers.entered", "C"), (6_500, "!carriers.left", "C")]
    assert [(at, event) for at, _, _, event, _ in run(rule, lines)] == [(6_000, "raised"), (6_500, "cleared")]


def test_first_and_last_occurrence_of_a_span_count_in_the_span() -> None:
    rule = {"kind": "occurs", "pattern": "*"} | IN_STATION
    lines = [(0, "!x", "C"), (1, "!carriers.entered", "C"), (2, "!carriers.left", "C"), (3, "!x", "C")]
    assert [at for at, *_ in events(rule, lines, None)] == [1, 2]


def test_spans_of_removed_rules_are_not_restored() -> None:
    span, gone = Span("a", "b"), Span("c", "d")
    rule = LimitRule(id="r", tag="t", severity=5, limits=AlarmLimits(high=LimitLevel(80)), while_=span)
    evaluator = RuleEvaluator([rule], 0)
    evaluator.restore({}, RunningJobs(spans=((span, 1), (gone, 1))))
    assert evaluator.jobs.spans == ((span, 1),)
    assert len(list(evaluator.feed(Sample(2, "t", 81)))) == 1
    assert len(list(evaluator.feed(Occurrence(3, "b", None, None)))) == 1
    assert not evaluator.jobs.spans
