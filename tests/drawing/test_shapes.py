"""The shapes are plain data objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.shapes import Block, cells, clean, columns, time_literal, wrap


def test_width_of_a_block_is_the_sum_of_its_sides() -> None:
    assert Block(3, 8, 1, 0, 0, lambda _x, _y, _out: None).width == 11


@given(st.text(), st.integers(4, 40), st.integers(1, 6))
def test_lines_stay_within_the_allowed_width_and_number(text: str, width: int, most: int) -> None:
    lines = wrap(text, width, most)
    assert 1 <= len(lines) <= most
    assert all(columns(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


@given(st.text(alphabet="ab _.-", max_size=60), st.integers(5, 20))
def test_wrapped_lines_hold_the_complete_text(text: str, width: int) -> None:
    lines = wrap(text, width, 100)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("torque_ok", 20, ("torque_ok",)),
        ("torque_ok and angle_ok", 12, ("torque_ok", "and angle_ok")),
        ("com.example.station.position.v1", 20, ("com.example.station.", "position.v1")),
        ("VerifyTorqueAgain", 12, ("VerifyTorque", "Again")),
        ("", 5, ("",)),
        ("abcdefghij", 4, ("abcd", "efgh", "ij")),
    ],
)
def test_lines_break_at_word_boundaries(text: str, width: int, lines: tuple[str, ...]) -> None:
    assert wrap(text, width, 4) == lines


def test_truncated_text_ends_with_an_ellipsis() -> None:
    assert wrap("x" * 100, 10, 2) == ("x" * 10, "x" * 9 + "…")


@pytest.mark.parametrize("bad", ["\x1b[31m", "\x00", "\ud800", "\u202e", "\x7f", "\ufeff", "\x9b"])
def test_unprintable_characters_are_replaced(bad: str) -> None:
    assert clean(f"a{bad}b").isprintable()
    assert bad[0] not in clean(bad)


def test_wide_characters_take_two_columns_and_combining_marks_none() -> None:
    assert columns("検査") == 4
    assert columns("e\u0301") == 1
    assert cells("検a") == ["検", "", "a"]
    assert cells("e\u0301") == ["e\u0301"]


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Mn", "Me"])))
def test_text_has_one_cell_per_column(text: str) -> None:
    plain = "x" + text
    assert len(cells(plain)) == columns(plain)
    assert "".join(cells(plain)) == plain


@pytest.mark.parametrize(
    ("seconds", "literal"), [(5, "T#5s"), (2.5, "T#2.5s"), (0.25, "T#250ms"), (120, "T#120s"), (10**9, "T#1000000000s")]
)
def test_durations_are_time_literals_of_the_standard(seconds: float, literal: str) -> None:
    assert time_literal(seconds) == literal
