"""The order of the values in a history page."""

import pytest

from edge.features.telemetry.opcua.history_parts import Raw


@pytest.mark.parametrize(
    ("start", "end", "is_backward"),
    [(1, 2, False), (2, 2, False), (1, None, False), (None, 2, True), (2, 1, True)],
)
def test_newest_value_comes_first_when_the_end_is_before_the_start(
    start: int | None, end: int | None, *, is_backward: bool
) -> None:
    assert Raw("tag", start, end, 10).is_backward is is_backward
