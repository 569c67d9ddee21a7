"""The shapes are plain data objects."""

from edge.chart.shapes import Block


def test_width_of_a_block_is_the_sum_of_its_sides() -> None:
    assert Block(3, 8, 1, 0, 0, lambda _x, _y, _out: None).width == 11
