"""The kind `limit`: levels, hysteresis, delays."""

from typing import Any

import pytest

from tests.features.telemetry.rules.replayed import Line, events, run

HOT: dict[str, Any] = {"kind": "limit", "tag": "t", "limits": {"high": {"at": 80}}}
COLD: dict[str, Any] = {"kind": "limit", "tag": "t", "limits": {"low": {"at": 10}}}
BOTH: dict[str, Any] = {
    "kind": "limit",
    "tag": "t",
    "limits": {
        "low_low": {"at": 0, "severity": 900},
        "low": {"at": 10, "severity": 400},
        "high": {"at": 80, "severity": 400},
        "high_high": {"at": 95, "severity": 800},
    },
}


def values(*pairs: tuple[int, Any]) -> list[Line]:
    return [(at, "t", value) for at, value in pairs]


@pytest.mark.parametrize(
    ("rule", "samples", "expected"),
    [
        (HOT, [(0, 80), (1, 80.1), (2, 80)], [(1, "raised"), (2, "cleared")]),
        (COLD, [(0, 10), (1, 9.9), (2, 10)], [(1, "raised"), (2, "cleared")]),
        (HOT | {"hysteresis": 5}, [(0, 81), (1, 75.1), (2, 75)], [(0, "raised"), (2, "cleared")]),
        (COLD | {"hysteresis": 5}, [(0, 9), (1, 14.9), (2, 15)], [(0, "raised"), (2, "cleared")]),
        (HOT, [(0, 81), (1, "text"), (2, True), (3, None), (4, [1]), (5, float("nan")), (6, 10**400)], [(0, "raised")]),
        (HOT, [(0, float("inf"))], []),
    ],
)
def test_finding_is_raised_and_cleared_at_its_level(
    rule: dict[str, Any], samples: list[Any], expected: list[Any]
) -> None:
    assert events(rule, values(*samples)) == expected


def test_severity_is_that_of_the_highest_active_level() -> None:
    found = events(BOTH, values((0, 81), (1, 96), (2, 90), (3, 50), (4, -1), (5, 5), (6, 50)))
    assert found == [
        (0, "raised", 400),
        (1, "escalated", 800),
        (2, "eased", 400),
        (3, "cleared", 400),
        (4, "raised", 900),
        (5, "eased", 400),
        (6, "cleared", 400),
    ]


def test_change_of_level_with_equal_severity_has_no_finding() -> None:
    rule = {"kind": "limit", "tag": "t", "limits": {"high": {"at": 80}, "low": {"at": 10}, "high_high": {"at": 90}}}
    assert events(rule, values((0, 81), (1, 91), (2, 5), (3, 85), (4, 50))) == [(0, "raised"), (4, "cleared")]


@pytest.mark.parametrize(
    ("samples", "until", "expected"),
    [
        ([(0, 81), (9_999, 81)], None, []),
        ([(0, 81), (10_000, 70)], None, [(10_000, "raised"), (10_000, "cleared")]),
        ([(0, 81), (500, 82)], 10_000, [(10_000, "raised")]),
        ([(0, 81), (500, 82)], 9_999, []),
        ([(0, 81), (5000, 70), (6000, 81)], 20_000, [(16_000, "raised")]),
    ],
)
def test_on_delay_starts_at_the_first_sample_in_the_level(samples: list[Any], until: int, expected: list[Any]) -> None:
    assert events(HOT | {"on_delay_seconds": 10}, values(*samples), until) == expected


def test_off_delay_starts_at_the_first_sample_out_of_the_level() -> None:
    rule = HOT | {"off_delay_seconds": 2}
    assert events(rule, values((0, 81), (1000, 70), (1500, 70)), 5000) == [(0, "raised"), (3000, "cleared")]
    assert events(rule, values((0, 81), (1000, 70), (2000, 81), (2500, 70)), 5000) == [(0, "raised"), (4500, "cleared")]


def test_sample_in_the_hysteresis_band_keeps_the_state_and_the_delay() -> None:
    rule = HOT | {"hysteresis": 10, "on_delay_seconds": 10, "off_delay_seconds": 5}
    assert events(rule, values((0, 81), (5000, 75)), 10_000) == [(10_000, "raised")]
    assert events(rule, values((0, 75), (5000, 81)), 20_000) == [(15_000, "raised")]
    samples = values((0, 81), (11_000, 69), (13_000, 75))
    assert events(rule, samples, 20_000) == [(10_000, "raised"), (16_000, "cleared")]


def test_each_level_has_its_own_delay() -> None:
    rule = BOTH | {"on_delay_seconds": 10}
    assert events(rule, values((0, 81), (4000, 96)), 20_000) == [(10_000, "raised", 400), (14_000, "escalated", 800)]


STALE: dict[str, Any] = {"kind": "stale", "tag": "t", "seconds": 10}
IN_JOB = STALE | {"while": "job.running"}


@pytest.mark.parametrize(
    ("lines", "until", "expected"),
    [
        # Since the last sample; the end is evaluated before a line of the same instant.
        ([(0, "t", 1)], 9_999, []),
        ([(0, "t", 1)], 10_000, [(10_000, "raised")]),
        ([(0, "t", 1), (10_000, "t", 1)], None, [(10_000, "raised"), (10_000, "cleared")]),
        ([(0, "t", 1), (9_000, "t", 1)], 19_000, [(19_000, "raised")]),
        # Since the first line of the input.
        ([(5_000, "other", 1)], 20_000, [(15_000, "raised")]),
        # A bad sample is none; an uncertain one counts. Neither is NaN or null a sample.
        ([(0, "t", 1), (5_000, "t", 1, "bad")], 10_000, [(10_000, "raised")]),
        ([(0, "t", 1), (5_000, "t", 1, "uncertain")], 14_999, []),
        ([(0, "t", 1), (5_000, "t", float("nan")), (6_000, "t", None)], 10_000, [(10_000, "raised")]),
        ([(0, "t", 1), (5_000, "t", "text")], 14_999, []),
        ([], 20_000, []),
    ],
)
def test_subject_is_stale_after_the_configured_time_without_a_sample(
    lines: list[Any], until: int | None, expected: list[Any]
) -> None:
    assert events(STALE, lines, until) == expected


def test_subject_of_a_glob_exists_from_its_first_usable_sample() -> None:
    rule = STALE | {"tag": "a.*"}
    lines = [(0, "b.x", 1), (1_000, "a.bad", 1, "bad"), (2_000, "a.x", 1)]
    assert [(at, subject) for at, _, subject, *_ in run(rule, lines, 60_000)] == [(12_000, "a.x")]


@pytest.mark.parametrize(
    ("lines", "until", "expected"),
    [
        # From the start of the job at the earliest, and only while it runs.
        ([(0, "t", 1), (30_000, "!job.started", "J")], 60_000, [(40_000, "raised")]),
        ([(0, "t", 1), (30_000, "!job.started", "J"), (39_000, "!job.ended", "J")], 60_000, []),
        (
            [(0, "!job.started", "J"), (15_000, "!job.ended", "J")],
            60_000,
            [(10_000, "raised"), (15_000, "cleared")],
        ),
        # Several jobs: from the first start to the last end.
        (
            [(0, "!job.started", "J"), (5_000, "!job.started", "K"), (7_000, "!job.ended", "J")],
            60_000,
            [(10_000, "raised")],
        ),
    ],
)
def test_staleness_with_while_is_counted_only_during_jobs(lines: list[Any], until: int, expected: list[Any]) -> None:
    assert events(IN_JOB, lines, until) == expected
