"""The kinds `rate`, `share` and `enters`."""

from typing import Any

import pytest

from edge.features.telemetry.model.rule import ShareRule
from edge.features.telemetry.rules.comparison import (
    MAX_VALUES,
    EntersState,
    ShareState,
    forget_job,
    observe_share,
    observe_value,
)
from tests.features.telemetry.rules.replayed import events, run

RATE: dict[str, Any] = {"kind": "rate", "tag": "t", "per_second": 2}
SHARE: dict[str, Any] = {"kind": "share", "tag": "t", "bad": 2, "of": 3}
ENTERS: dict[str, Any] = {"kind": "enters", "tag": "t"}


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([(0, 1), (1000, 3)], []),
        ([(0, 1), (1000, 3.1)], [(1000, "raised")]),
        ([(0, 1), (1000, -1.1)], [(1000, "raised")]),
        ([(0, 1), (500, 3), (1500, 3)], [(500, "raised"), (1500, "cleared")]),
        # A sample of the same instant is ignored, also as the previous one of the next.
        ([(0, 1), (0, 100), (1000, 2)], []),
        ([(0, 1), (1000, 2), (1000, 100), (2000, 3)], []),
        ([(0, 1), (500, "x"), (1000, 3.1)], [(1000, "raised")]),
    ],
)
def test_rate_is_computed_from_consecutive_samples(samples: list[Any], expected: list[Any]) -> None:
    assert events(RATE, [(at, "t", value) for at, value in samples]) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([False, True], []),
        ([False, False], [(1, "raised")]),
        ([False, True, "NotOK"], [(2, "raised")]),
        ([False, True, True, "NotOK"], []),
        ([False, False, True, True], [(1, "raised"), (3, "cleared")]),
        (["OK", 0, "notok", "false"], []),
    ],
)
def test_share_counts_bad_results_among_the_last_results(values: list[Any], expected: list[Any]) -> None:
    assert events(SHARE, [(at, "t", value) for at, value in enumerate(values)]) == expected


def test_share_keeps_only_the_required_number_of_results() -> None:
    state = ShareState()
    for _ in range(10):
        state = observe_share(ShareRule(id="r", tag="t", bad=2, of=3), state, value=True)
    assert state == ShareState((False, False, False))


@pytest.mark.parametrize(
    ("lines", "instants"),
    [
        # Outside of jobs: against the previous value; the first one is not raised.
        ([(0, "t", "A"), (1, "t", "A"), (2, "t", "B"), (3, "t", "A")], [2, 3]),
        # In a job: against all earlier values of this job.
        ([(0, "!job.started", "J"), (1, "t", "A"), (2, "t", "B"), (3, "t", "A"), (4, "t", "C")], [1, 2, 4]),
        # The next job begins with none.
        (
            [
                (0, "!job.started", "J"),
                (1, "t", "A"),
                (2, "!job.ended", "J"),
                (3, "!job.started", "K"),
                (4, "t", "A"),
            ],
            [1, 4],
        ),
        # The job of a sample is the one started last that still runs.
        (
            [
                (0, "!job.started", "J"),
                (1, "t", "A"),
                (2, "!job.started", "K"),
                (3, "t", "A"),
                (4, "!job.ended", "K"),
                (5, "t", "A"),
                (6, "t", "B"),
            ],
            [1, 3, 6],
        ),
        # 1 and 1.0 are the same value, 1 and true are not.
        ([(0, "t", 1), (1, "t", 1.0), (2, "t", True), (3, "t", "1"), (4, "t", 10**30), (5, "t", 10**30)], [2, 3, 4]),
    ],
)
def test_enters_raises_a_value_only_the_first_time(lines: list[Any], instants: list[int]) -> None:
    found = run(ENTERS, lines)
    assert [at for at, *_ in found] == instants
    assert {event for *_, event, _ in found} == {"raised"}


def test_value_is_new_for_each_subject_of_a_glob() -> None:
    lines = [(0, "!job.started", "J"), (1, "a.x", 1), (1, "b.x", 1), (2, "a.x", 1)]
    assert [(at, subject) for at, _, subject, *_ in run(ENTERS | {"tag": "*.x"}, lines)] == [(1, "a.x"), (1, "b.x")]


def test_known_values_are_bounded_and_dropped_with_their_job() -> None:
    state = EntersState()
    for value in range(MAX_VALUES + 5):
        state, new = observe_value(state, value, "J")
        assert new
    assert len(state.seen["J"]) == MAX_VALUES
    assert forget_job(state, "J").seen == {}
