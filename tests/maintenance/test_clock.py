"""Whether the clock is synchronised is known from the kernel, or from the mark of systemd-timesyncd."""

from pathlib import Path
from typing import Any

import pytest

from edge.maintenance import clock
from edge.maintenance.clock import Clock, mark_unsynchronised, read_clock


class Kernel:
    """Answers adjtimex(2)."""

    def __init__(self, state: int) -> None:
        self.adjtimex = lambda _: state


def record_with(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> dict[str, Any]:
    monkeypatch.setattr(clock, "_libc", kernel)
    record: dict[str, Any] = {"event": "ready"}
    return dict(mark_unsynchronised(None, "info", record))


@pytest.mark.parametrize(
    ("state", "known"), [(0, Clock.SYNCHRONISED), (1, Clock.SYNCHRONISED), (5, Clock.UNSYNCHRONISED)]
)
def test_the_kernel_knows(monkeypatch: pytest.MonkeyPatch, state: int, known: Clock) -> None:
    monkeypatch.setattr(clock, "_libc", Kernel(state))
    assert read_clock() is known


def test_where_a_sandbox_forbids_to_ask_the_mark_of_timesyncd_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clock, "_libc", Kernel(-1))
    monkeypatch.setattr(clock, "_TIMESYNCD", tmp_path / "timesync")
    assert read_clock() is Clock.UNKNOWN
    (tmp_path / "timesync").mkdir()
    assert read_clock() is Clock.UNSYNCHRONISED
    (tmp_path / "timesync" / "synchronized").touch()
    assert read_clock() is Clock.SYNCHRONISED


def test_the_real_kernel_answers_without_a_right() -> None:
    assert read_clock() in Clock


def test_only_records_of_a_clock_that_is_not_synchronised_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record_with(monkeypatch, Kernel(5)) == {"event": "ready", "clock": "unsynchronised"}
    assert record_with(monkeypatch, Kernel(0)) == {"event": "ready"}
