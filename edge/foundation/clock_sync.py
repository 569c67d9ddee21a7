"""Reads whether the clock of this machine is synchronized: instants of several machines depend on it."""

import ctypes
import os
import struct
from collections.abc import Callable, MutableMapping
from enum import StrEnum
from pathlib import Path
from typing import Any

_ERROR_STATE = 5
"""TIME_ERROR of adjtimex(2): the clock is not synchronized."""

_TIMEX_BYTES = 512
"""Larger than `struct timex`; with all zeros the call only reads."""

_OFFSET = struct.Struct("@8xq24xi")
"""The members `offset` and `status` of `struct timex` with a `long` of 64 bits."""
_STA_NANO = 0x2000
_NANOSECONDS_PER_MS = 1_000_000
_MICROSECONDS_PER_MS = 1_000

_TIMESYNCD = Path("/run/systemd/timesync")


_libc = ctypes.CDLL(None, use_errno=True)


class Clock(StrEnum):
    """State of the clock."""

    SYNCHRONISED = "synchronised"
    UNSYNCHRONISED = "unsynchronised"
    UNKNOWN = "unknown"


def _ask_kernel() -> int:
    return int(_libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES)))


def read_clock(ask_kernel: Callable[[], int] = _ask_kernel, timesyncd: Path = _TIMESYNCD) -> Clock:
    """Read the state from the kernel; within a sandbox (`ProtectClock=yes`) from the mark of systemd-timesyncd.

    `ask_kernel` returns the state that adjtimex(2) returns; below 0 it is forbidden.
    """
    if (state := ask_kernel()) >= 0:
        return Clock.UNSYNCHRONISED if state == _ERROR_STATE else Clock.SYNCHRONISED
    return _marked(timesyncd)


def read_offset_ms(ask: Callable[[Any], int] = _libc.adjtimex) -> float | None:
    """Return the offset that the kernel still has to correct; None in a sandbox, or while it is not synchronised."""
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    if ask(timex) in {-1, _ERROR_STATE}:
        return None
    offset, status = _OFFSET.unpack_from(timex.raw)
    return float(offset) / (_NANOSECONDS_PER_MS if status & _STA_NANO else _MICROSECONDS_PER_MS)


def _marked(directory: Path) -> Clock:
    if os.path.lexists(directory / "synchronized"):
        return Clock.SYNCHRONISED
    return Clock.UNSYNCHRONISED if directory.is_dir() else Clock.UNKNOWN


def mark_unsynchronised(
    _logger: object, _method: str, record: MutableMapping[str, Any], clock: Callable[[], Clock] = read_clock
) -> MutableMapping[str, Any]:
    """Mark a log record with `clock=unsynchronised` when its time is unreliable."""
    if clock() is Clock.UNSYNCHRONISED:
        record["clock"] = Clock.UNSYNCHRONISED.value
    return record
