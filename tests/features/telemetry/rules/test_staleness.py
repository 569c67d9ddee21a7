"""The kind `stale`."""

from typing import Any

import pytest

from tests.features.telemetry.rules.replayed import events, run

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
