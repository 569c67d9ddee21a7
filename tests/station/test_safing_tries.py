"""Tries to make equipment safe: their intervals, their reasons, and what people read of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.equipment_health import OpenSafing
from edge.station.safing_tries import INTERVALS_S, SafingTries, problem_of

SINCE = 1_700_000_000_000
STOP = OpenSafing(what="stop", command_id="J1/R/a/1", since=SINCE, tries=3, reason="locked")


@pytest.mark.parametrize(("tries", "wait"), [(1, 2.0), (2, 5.0), (3, 10.0), (4, 10.0), (9000, 10.0)])
def test_intervals_are_2_s_5_s_and_then_10_s(tries: int, wait: float) -> None:
    value = SafingTries(SINCE)
    for _ in range(tries):
        value = value.tried(100.0)
    assert value.due_s == 100.0 + wait


def test_first_try_on_a_connection_is_due_at_once() -> None:
    value = SafingTries(SINCE)
    assert value.due_s == -math.inf
    again = value.tried(1.0).tried(2.0, "locked").reconnected()
    assert (again.due_s, again.count, again.since, again.reason) == (-math.inf, 2, SINCE, "locked")
    assert again.tried(9.0).due_s == 11.0


@given(st.lists(st.tuples(st.floats(0, 1e9), st.sampled_from([None, "", "locked"])), max_size=20))
def test_a_try_never_loses_count_and_waits_at_most_10_s(tries: list[tuple[float, str | None]]) -> None:
    value = SafingTries(SINCE)
    for number, (at, reason) in enumerate(tries, 1):
        before, value = value, value.tried(at, reason)
        assert value.count == number
        assert at + INTERVALS_S[0] <= value.due_s <= at + INTERVALS_S[-1]
        assert value.reason == (before.reason if reason is None else reason)


@pytest.mark.parametrize(
    ("open_safing", "problem"),
    [
        ((), ""),
        ((STOP,), "stop of J1/R/a/1: locked"),
        ((OpenSafing(what="release", since=SINCE),), "release"),
        (
            (OpenSafing(what="reset", command_id="J2/R/b/1", since=SINCE + 1), STOP),
            "stop of J1/R/a/1 and 1 more: locked",
        ),
    ],
)
def test_problem_names_the_oldest_and_no_number_of_tries(open_safing: tuple[OpenSafing, ...], problem: str) -> None:
    start = "the tool may still be active, not confirmed since 2023-11-14 22:13:20Z: "
    assert str(problem_of(open_safing)) == (start + problem if problem else "")
