"""The state of the clock is read from the kernel, or from the mark of systemd-timesyncd."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge.foundation.clock_sync import Clock, mark_unsynchronised, read_clock, read_offset_ms


@pytest.mark.parametrize(
    ("state", "known"), [(0, Clock.SYNCHRONISED), (1, Clock.SYNCHRONISED), (5, Clock.UNSYNCHRONISED)]
)
def test_clock_state_is_read_from_the_kernel(state: int, known: Clock) -> None:
    assert read_clock(lambda: state) is known


def test_clock_state_is_read_from_timesyncd_without_kernel_access(tmp_path: Path) -> None:
    mark = tmp_path / "timesync"
    assert read_clock(lambda: -1, mark) is Clock.UNKNOWN
    mark.mkdir()
    assert read_clock(lambda: -1, mark) is Clock.UNSYNCHRONISED
    (mark / "synchronized").touch()
    assert read_clock(lambda: -1, mark) is Clock.SYNCHRONISED


def test_clock_state_of_this_host_is_read_without_privileges() -> None:
    assert read_clock() in Clock


def test_only_records_of_an_unsynchronised_clock_are_marked() -> None:
    marked = mark_unsynchronised(None, "info", {"event": "ready"}, lambda: Clock.UNSYNCHRONISED)
    assert marked == {"event": "ready", "clock": "unsynchronised"}
    assert mark_unsynchronised(None, "info", {"event": "ready"}, lambda: Clock.SYNCHRONISED) == {"event": "ready"}


def test_clock_offset_is_converted_from_the_unit_of_the_kernel() -> None:
    def answers(offset: int, status: int, state: int = 0) -> Callable[[Any], int]:
        def ask(timex: Any) -> int:
            struct.pack_into("@8xq24xi", timex, 0, offset, status)
            return state

        return ask

    assert read_offset_ms(answers(-2_500_000, 0x2001)) == -2.5
    assert read_offset_ms(answers(2_500, 1)) == 2.5
    assert read_offset_ms(answers(1, 1, state=5)) is None
    assert read_offset_ms(answers(1, 1, state=-1)) is None
    assert read_offset_ms() is None or isinstance(read_offset_ms(), float)
