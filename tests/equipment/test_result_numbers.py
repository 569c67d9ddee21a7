"""The numbers of results: gaps, jumps, numbers that begin again, and the one that survives a restart."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.equipment.result_numbers import Gap, MissingNumbers, ResultNumbers, parse_position, position_text

NOON = datetime(2026, 11, 26, 12, 0, 0)  # noqa: DTZ001 - local, without a zone
LATER = NOON + timedelta(hours=1)


def test_numbers_missing_before_the_newest_become_a_gap() -> None:
    numbers = ResultNumbers(5, NOON)
    numbers.follow(9, LATER)
    assert (numbers.last, numbers.gaps, numbers.durable([])) == (9, [Gap(6, 8)], 5)
    numbers.narrow(Gap(6, 8), 6)
    assert numbers.gaps == [Gap(6, 6)]
    numbers.narrow(Gap(6, 6), 5)
    assert (numbers.gaps, numbers.durable([])) == ([], 9)


def test_numbers_that_begin_again_are_missing_from_one_on() -> None:
    numbers = ResultNumbers(900, NOON)
    numbers.follow(3, LATER)
    assert (numbers.last, numbers.gaps) == (3, [Gap(1, 2, after=NOON)])


def test_older_result_that_comes_again_changes_nothing() -> None:
    numbers = ResultNumbers(900, LATER)
    numbers.follow(3, NOON)
    assert (numbers.last, numbers.gaps) == (900, [])
    assert not numbers.is_new(3, NOON)


def test_numbers_that_begin_again_without_an_instant_are_followed() -> None:
    numbers = ResultNumbers(900, None, [Gap(1, 2)])
    numbers.follow(3, LATER)
    assert (numbers.last, numbers.gaps) == (3, [])


def test_first_number_of_all_leaves_no_gap() -> None:
    numbers = ResultNumbers()
    assert not numbers.is_new(7, NOON)
    assert numbers.durable([]) is None
    numbers.follow(7, NOON)
    assert (numbers.last, numbers.gaps) == (7, [])


@given(st.lists(st.integers(0, 30), max_size=20), st.sets(st.integers(0, 30)))
def test_no_number_after_the_durable_one_is_forgotten(sequence: list[int], unsettled: set[int]) -> None:
    numbers = ResultNumbers(0, None)
    for n, number in enumerate(sequence):
        numbers.follow(number, NOON + timedelta(seconds=n))
    durable = numbers.durable(unsettled)
    assert durable is not None
    assert numbers.last is not None
    assert durable <= numbers.last
    assert all(gap.first > durable for gap in numbers.gaps)
    assert all(number > durable for number in unsettled if number)


def test_deferred_number_is_requested_after_the_others_and_stays_open() -> None:
    numbers = ResultNumbers(9, LATER, [Gap(3, 4)])
    numbers.defer(7, NOON)
    assert (numbers.gaps, numbers.durable([])) == ([Gap(3, 4)], 2)
    numbers.retry()
    assert (numbers.gaps, numbers.deferred) == ([Gap(7, 7, NOON), Gap(3, 4)], [])
    numbers.defer(7, NOON)
    numbers.begin_again(3, LATER, NOON)
    assert (numbers.last, numbers.gaps, numbers.deferred) == (3, [Gap(1, 2, NOON)], [])


def test_lower_number_is_new_unless_its_date_is_older() -> None:
    assert ResultNumbers(900, None).is_new(3, LATER)
    assert ResultNumbers(900, NOON).is_new(3, None)
    assert not ResultNumbers(900, NOON).is_new(900, None)
    assert not ResultNumbers(900, LATER).is_new(3, NOON)


@given(st.sets(st.integers(-50, 50)), st.integers(-60, 60))
def test_position_restores_the_missing_numbers_up_to_its_own(numbers: set[int], last: int) -> None:
    text = position_text(last, MissingNumbers(set(numbers)).ranges(last))
    assert parse_position(text) == (last, MissingNumbers({number for number in numbers if number <= last}))


def test_missing_numbers_are_ranges_until_they_come_or_are_skipped() -> None:
    missing = MissingNumbers()
    missing.add(2, 3)
    missing.add(6, 9)
    missing.remove(7, 7)
    missing.skip()
    assert missing.ranges(8) == [(3, 3), (6, 6), (8, 8)]


def test_missing_numbers_are_bounded() -> None:
    missing = MissingNumbers()
    missing.add(0, 2**63)
    missing.add(5, 6)
    assert (len(missing.numbers), min(missing.numbers)) == (1000, 2**63 - 999)
    missing.numbers.clear()
    missing.skip()
    assert missing.ranges(9) == []


@pytest.mark.parametrize("text", ["", "last", "9 5", "9 5..", "9 ..5"])
def test_text_that_is_not_a_position_is_ignored(text: str) -> None:
    assert parse_position(text) is None
