"""Numbers of results that did not come, and the text from which a restart continues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.equipment.missing_numbers import MissingNumbers, parse_position, position_text


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
