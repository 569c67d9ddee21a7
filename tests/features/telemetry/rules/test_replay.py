"""Virtual time: the order of findings, `until`, and occurrences."""

from typing import Any

import pytest

from tests.features.telemetry.rules.replayed import events, run

HOT: dict[str, Any] = {"kind": "limit", "tag": "*", "limits": {"high": {"at": 80}}}


def test_findings_of_one_instant_are_sorted_by_rule_then_line_then_subject() -> None:
    rules = [
        {"kind": "stale", "tag": "*", "seconds": 1, "id": "z"},
        HOT | {"id": "b"},
        {"kind": "occurs", "pattern": "o", "id": "a"},
    ]
    lines = [(0, "y", 1), (0, "x", 1), (1000, "!o", "J"), (1000, "y", 81), (1000, "x", 81), (1000, "!o", "I")]
    assert [(rule, subject, event) for _, rule, subject, event, _ in run(rules, lines)] == [
        ("z", "x", "raised"),
        ("z", "y", "raised"),
        ("z", "y", "cleared"),
        ("z", "x", "cleared"),
        ("b", "y", "raised"),
        ("b", "x", "raised"),
        ("a", "J", "raised"),
        ("a", "I", "raised"),
    ]


def test_subjects_cleared_by_one_line_are_sorted_by_name() -> None:
    rule = HOT | {"while": "job.running"}
    lines = [(0, "!job.started", "J"), (1, "b", 81), (2, "a", 81), (3, "!job.ended", "J")]
    assert [(at, subject) for at, _, subject, *_ in run(rule, lines)] == [(1, "b"), (2, "a"), (3, "a"), (3, "b")]


@pytest.mark.parametrize(("until", "count"), [(None, 0), (9_999, 0), (10_000, 1), (10_001, 1)])
def test_until_is_inclusive_and_by_default_the_last_line(until: int | None, count: int) -> None:
    assert len(events(HOT | {"on_delay_seconds": 10}, [(0, "t", 81)], until)) == count


def test_lines_after_until_are_not_evaluated() -> None:
    assert events(HOT, [(0, "t", 1), (5, "t", 81), (6, "t", 1)], 5) == [(5, "raised")]


def test_cleared_finding_keeps_its_last_severity() -> None:
    rule = HOT | {"limits": {"high": {"at": 80, "severity": 300}}}
    assert run(rule, [(0, "t", 81), (1, "t", 1)])[-1] == (1, "r0", "t", "cleared", 300)


@pytest.mark.parametrize(
    ("pattern", "lines", "found"),
    [
        ("carrier.left", [(0, "!carrier.left", "J"), (1, "!carrier.joined", "J")], [(0, "J")]),
        ("carrier.left", [(0, "!carrier.left")], [(0, "carrier.left")]),
        (
            "carrier.*",
            [(0, "!carrier.left"), (1, "!carrier.a.b"), (2, "!carrier")],
            [(0, "carrier.*"), (1, "carrier.*")],
        ),
        ("job.*", [(0, "!job.started", "J"), (1, "!job.ended", "J")], [(0, "J"), (1, "J")]),
        ("a?[b]", [(0, "!a?[b]"), (1, "!axb")], [(0, "a?[b]")]),
        ("x", [(0, "x", 5)], []),
    ],
)
def test_occurrence_is_raised_once_and_never_cleared(pattern: str, lines: list[Any], found: list[Any]) -> None:
    rows = run({"kind": "occurs", "pattern": pattern}, lines, 60_000)
    assert [(at, subject) for at, _, subject, *_ in rows] == found
    assert {event for *_, event, _ in rows} <= {"raised"}


def test_start_and_end_of_a_job_count_as_occurrences_during_the_job() -> None:
    lines = [(0, "!x"), (1, "!job.started", "J"), (2, "!x", "J"), (3, "!job.ended", "J"), (4, "!x", "J")]
    rule = {"kind": "occurs", "pattern": "*", "while": "job.running"}
    assert [at for at, _ in events(rule, lines)] == [1, 2, 3]


def test_occurrence_is_raised_once_per_job() -> None:
    lines = [(0, "!job.started", "J"), (1, "!x", "J"), (2, "!x", "J"), (3, "!job.ended", "J"), (4, "!x", "J")]
    assert [at for at, _ in events({"kind": "occurs", "pattern": "x", "once": "job"}, lines)] == [1, 4]


def test_bad_samples_are_ignored() -> None:
    assert events(HOT, [(0, "t", 81, "bad"), (1, "t", 81, "uncertain"), (2, "t", 1, "bad")]) == [(1, "raised")]


def test_empty_input_has_no_findings() -> None:
    assert run(HOT, [], 60_000) == []
