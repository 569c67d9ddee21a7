"""The state of the clock is read from the kernel, or from the mark of systemd-timesyncd."""

from pathlib import Path

import pytest

from edge.maintenance.clock import Clock, mark_unsynchronised, read_clock


@pytest.mark.parametrize(
    ("state", "known"), [(0, Clock.SYNCHRONISED), (1, Clock.SYNCHRONISED), (5, Clock.UNSYNCHRONISED)]
)
def test_the_kernel_knows(state: int, known: Clock) -> None:
    assert read_clock(lambda: state) is known


def test_mark_of_timesyncd_counts_where_a_sandbox_hides_the_kernel(tmp_path: Path) -> None:
    mark = tmp_path / "timesync"
    assert read_clock(lambda: -1, mark) is Clock.UNKNOWN
    mark.mkdir()
    assert read_clock(lambda: -1, mark) is Clock.UNSYNCHRONISED
    (mark / "synchronized").touch()
    assert read_clock(lambda: -1, mark) is Clock.SYNCHRONISED


def test_the_real_kernel_answers_without_a_right() -> None:
    assert read_clock() in Clock


def test_only_records_of_an_unsynchronised_clock_are_marked() -> None:
    marked = mark_unsynchronised(None, "info", {"event": "ready"}, lambda: Clock.UNSYNCHRONISED)
    assert marked == {"event": "ready", "clock": "unsynchronised"}
    assert mark_unsynchronised(None, "info", {"event": "ready"}, lambda: Clock.SYNCHRONISED) == {"event": "ready"}
