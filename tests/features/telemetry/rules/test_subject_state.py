"""One rule for one subject: findings, severity, cooldown, once per job, while a job runs."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel, LimitRule
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.features.telemetry.rules.subject import RunningJobs
from edge.features.telemetry.rules.subject_state import (
    Finding,
    FindingEvent,
    JobEnded,
    ReadyRule,
    TimePassed,
    evaluate,
    is_open,
    new_state,
    next_instant,
)
from edge.ports.sample_lines import Sample
from tests.features.telemetry.rules.replayed import events, run

HOT: dict[str, Any] = {"kind": "limit", "tag": "t", "limits": {"high": {"at": 80}}}
STARTED, ENDED = (0, "!job.started", "J"), (100_000, "!job.ended", "J")


def test_evaluation_does_not_change_its_input_state() -> None:
    (rule,), _ = parse_rules([HOT | {"id": "r", "severity": 5}])
    ready, state, jobs = ReadyRule(rule), new_state(rule, 0), RunningJobs()
    first = evaluate(ready, "t", state, Sample(1, "t", 81), 1, jobs)
    assert first == evaluate(ready, "t", state, Sample(1, "t", 81), 1, jobs)
    assert state == new_state(rule, 0)
    ((finding,), after) = (first[1], first[0])
    assert (finding.event, finding.severity, after.active) == (FindingEvent.RAISED, 5, 5)
    assert evaluate(ready, "t", after, TimePassed(), 2, jobs) == (after, ())
    assert next_instant(rule, after, jobs) is None


def test_rule_is_open_while_a_job_runs() -> None:
    rule = LimitRule(id="r", tag="t", severity=5, limits=AlarmLimits(LimitLevel(80)), while_="job.running")
    assert not is_open(rule, RunningJobs())
    assert is_open(rule, RunningJobs(("J",), 0))
    state = new_state(rule, 0)
    assert evaluate(ReadyRule(rule), "t", state, JobEnded("J"), 5, RunningJobs()) == (state, ())


@pytest.mark.parametrize(
    ("lines", "until", "expected"),
    [
        # No new raise until the cooldown ends; it counts from the raise.
        ([(0, "t", 81), (1000, "t", 70), (2000, "t", 81), (3000, "t", 70)], 60_000, [(0, "raised"), (1000, "cleared")]),
        # A condition that still holds when it ends is raised at that instant.
        (
            [(0, "t", 81), (1000, "t", 70), (2000, "t", 81)],
            60_000,
            [(0, "raised"), (1000, "cleared"), (10_000, "raised")],
        ),
        # The end at the instant of a line is evaluated before the line.
        (
            [(0, "t", 81), (1000, "t", 70), (2000, "t", 81), (10_000, "t", 70)],
            60_000,
            [(0, "raised"), (1000, "cleared"), (10_000, "raised"), (10_000, "cleared")],
        ),
        # A raise at the end starts the next cooldown.
        (
            [(0, "t", 81), (1000, "t", 70), (2000, "t", 81), (11_000, "t", 70), (12_000, "t", 81)],
            60_000,
            [(0, "raised"), (1000, "cleared"), (10_000, "raised"), (11_000, "cleared"), (20_000, "raised")],
        ),
    ],
)
def test_cooldown_delays_a_new_raise(lines: list[Any], until: int, expected: list[Any]) -> None:
    assert events(HOT | {"cooldown_seconds": 10}, lines, until) == expected


def test_cooldown_does_not_delay_changes_of_severity_or_clearing() -> None:
    rule = HOT | {
        "cooldown_seconds": 10,
        "limits": {"high": {"at": 80, "severity": 1}, "high_high": {"at": 90, "severity": 2}},
    }
    lines = [(0, "t", 81), (1, "t", 91), (2, "t", 85), (3, "t", 1), (4, "t", 91)]
    expected = [(0, "raised", 1), (1, "escalated", 2), (2, "eased", 1), (3, "cleared", 1), (10_000, "raised", 2)]
    assert events(rule, lines, 20_000) == expected


def test_bypass_cooldown_raises_at_once() -> None:
    rule = HOT | {"cooldown_seconds": 10, "bypass_cooldown": True}
    assert [at for at, _ in events(rule, [(0, "t", 81), (1, "t", 70), (2, "t", 81)])] == [0, 1, 2]


def test_cooldown_is_counted_for_each_subject() -> None:
    rule = HOT | {"cooldown_seconds": 10, "tag": "*"}
    lines = [(0, "a", 81), (1, "b", 81), (2, "a", 1), (3, "a", 81)]
    assert [(at, subject) for at, _, subject, event, _ in run(rule, lines) if event == "raised"] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "enters", "tag": "t", "cooldown_seconds": 10},
        {"kind": "occurs", "pattern": "x", "cooldown_seconds": 10},
    ],
)
def test_momentary_findings_in_a_cooldown_are_dropped(rule: dict[str, Any]) -> None:
    lines: list[Any] = [(0, "t", 0), *((at, "t", at) for at in (1, 5000, 10_000, 10_001))]
    lines += [(20_000 + at, "!x", None) for at in (1, 5000, 10_000, 10_001)]
    found = [at for at, _ in events(rule, lines, 60_000)]
    assert found == ([1, 10_001] if rule["kind"] == "enters" else [20_001, 30_001])


def test_finding_is_raised_once_per_subject_and_job() -> None:
    rule = HOT | {"once": "job", "tag": "*"}
    lines = [
        (0, "!job.started", "J"),
        (1, "a", 81),
        (2, "a", 70),
        (3, "a", 81),
        (4, "b", 81),
        (5, "a", 70),
        (6, "!job.ended", "J"),
        (7, "a", 81),
        (8, "a", 70),
        (9, "a", 81),
        (10, "a", 70),
        (11, "!job.started", "J"),
        (12, "a", 81),
    ]
    raised = [(at, subject) for at, _, subject, event, _ in run(rule, lines) if event == "raised"]
    assert raised == [(1, "a"), (4, "b"), (7, "a"), (9, "a"), (12, "a")]


def test_condition_still_true_at_the_job_end_is_raised_outside_the_job() -> None:
    lines = [(0, "!job.started", "J"), (1, "t", 81), (2, "t", 70), (3, "t", 81), (4, "!job.ended", "J")]
    assert events(HOT | {"once": "job"}, lines) == [(1, "raised"), (2, "cleared"), (4, "raised")]


def test_once_per_job_does_not_suppress_escalation() -> None:
    limits = {"high": {"at": 80, "severity": 1}, "high_high": {"at": 90, "severity": 2}}
    lines = [(0, "!job.started", "J"), (1, "t", 81), (2, "t", 91)]
    assert events(HOT | {"once": "job", "limits": limits}, lines) == [(1, "raised", 1), (2, "escalated", 2)]


@pytest.mark.parametrize(
    ("members", "lines", "expected"),
    [
        # Samples outside are ignored; an active finding is cleared when the job ends.
        ({}, [(0, "t", 81), (1, "!job.started", "J"), (2, "t", 81), (3, "!job.ended", "J"), (4, "t", 81)], [2, 3]),
        # Running delays are dropped at the end.
        ({"on_delay_seconds": 10}, [(0, "!job.started", "J"), (1, "t", 81), (5, "!job.ended", "J")], []),
        # The next job begins without a level: another sample is needed.
        (
            {},
            [(0, "!job.started", "J"), (1, "t", 81), (2, "!job.ended", "J"), (3, "!job.started", "K"), (4, "t", 81)],
            [1, 2, 4],
        ),
        # Several jobs: from the first start to the last end.
        (
            {},
            [
                (0, "!job.started", "J"),
                (1, "!job.started", "K"),
                (2, "t", 81),
                (3, "!job.ended", "J"),
                (4, "t", 82),
                (5, "!job.ended", "K"),
            ],
            [2, 5],
        ),
    ],
)
def test_rule_with_while_is_evaluated_only_during_jobs(
    members: dict[str, Any], lines: list[Any], expected: list[int]
) -> None:
    assert [at for at, *_ in events(HOT | {"while": "job.running"} | members, lines, 60_000)] == expected


def test_windows_and_previous_samples_are_kept_for_the_next_job() -> None:
    between = [(2500, "!job.ended", "J"), (2600, "t", 400), (2700, "!job.started", "K")]
    baseline = {"kind": "baseline", "tag": "t", "min_samples": 3, "while": "job.running"}
    lines = [STARTED, (1, "t", 1), (1000, "t", 2), (2000, "t", 3), *between, (3000, "t", 9)]
    assert events(baseline, lines) == [(3000, "raised")]
    rate = {"kind": "rate", "tag": "t", "per_second": 1, "while": "job.running"}
    assert events(rate, [STARTED, (2000, "t", 3), *between, (3000, "t", 4.5)]) == [(3000, "raised")]
    share = {"kind": "share", "tag": "t", "bad": 2, "of": 3, "while": "job.running"}
    assert events(share, [STARTED, (2000, "t", False), *between, (3000, "t", False)]) == [(3000, "raised")]
    chart = {"kind": "control_chart", "tag": "t", "mean": 0, "sigma": 1, "nelson": [2], "while": "job.running"}
    run_of_eight = [(at, "t", 0.5) for at in range(8)]
    assert events(chart, [STARTED, *run_of_eight, *between, (3000, "t", 0.5)]) == [(3000, "raised")]
    condition = {"kind": "expression", "when": "a > b", "while": "job.running"}
    lines = [STARTED, (1, "a", 5), (2500, "!job.ended", "J"), (2700, "!job.started", "K"), (3000, "b", 1)]
    assert events(condition, lines) == [(3000, "raised")]


def test_finding_line_has_its_members_in_the_documented_order() -> None:
    line = Finding(12_000, "hot", "wrench.temp", FindingEvent.RAISED, 500).as_json()
    assert list(line.items()) == [
        ("at", 12_000),
        ("rule", "hot"),
        ("subject", "wrench.temp"),
        ("event", "raised"),
        ("severity", 500),
    ]
