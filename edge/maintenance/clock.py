"""Tells whether this machine's clock is synchronised: without that, instants of other machines do not compare."""

import ctypes
import os
from collections.abc import MutableMapping
from enum import StrEnum
from pathlib import Path
from typing import Any

_ERROR_STATE = 5
"""TIME_ERROR of adjtimex(2): nobody keeps this clock at the right time."""

_TIMEX_BYTES = 512
"""More than `struct timex` has; all zero, it asks and changes nothing."""

_TIMESYNCD = Path("/run/systemd/timesync")

_libc = ctypes.CDLL(None, use_errno=True)


class Clock(StrEnum):
    """What is known of the clock."""

    SYNCHRONISED = "synchronised"
    UNSYNCHRONISED = "unsynchronised"
    UNKNOWN = "unknown"


def read_clock() -> Clock:
    """Ask the kernel; where a sandbox (`ProtectClock=yes`) keeps us from it, look at the mark of systemd-timesyncd."""
    state = _libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if state >= 0:
        return Clock.UNSYNCHRONISED if state == _ERROR_STATE else Clock.SYNCHRONISED
    return _marked(_TIMESYNCD)


def _marked(directory: Path) -> Clock:
    if os.path.lexists(directory / "synchronized"):
        return Clock.SYNCHRONISED
    return Clock.UNSYNCHRONISED if directory.is_dir() else Clock.UNKNOWN


def mark_unsynchronised(_logger: object, _method: str, record: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mark a log record whose time is not to be relied on with `clock=unsynchronised`."""
    if read_clock() is Clock.UNSYNCHRONISED:
        record["clock"] = Clock.UNSYNCHRONISED.value
    return record
