"""The shapes are plain data."""

from edge.chart.shapes import Block


def test_a_block_is_as_wide_as_it_reaches_to_both_sides() -> None:
    assert Block(3, 8, 1, 0, 0, lambda _x, _y, _out: None).width == 11
