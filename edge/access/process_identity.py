"""Names a running process so that another on the same host can check whether it still runs."""

import os
import re
import uuid
from enum import Enum, auto
from pathlib import Path
from typing import Final

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_TOKEN = re.compile(r"(.+) ([1-9][0-9]{0,8}) \S+")
_ended: Final[set[str]] = set()


class ProcessFate(Enum):
    """What is known about the process of a token."""

    RUNNING = auto()
    DEAD = auto()
    UNKNOWN = auto()
    """It is or was one of another host, kernel or namespace."""


def process_token() -> str:
    """Return a unique name of this process, with the kernel and the namespace in which its id counts."""
    return f"{_place()} {os.getpid()} {uuid.uuid4()}"


def end_token(token: str) -> None:
    """Record that the holder of a token of this process has ended: this process opens the gateway again."""
    _ended.add(token)


def is_surely_dead(token: str) -> bool:
    """Return whether the process of a token is gone; False also where that cannot be known."""
    return process_fate(token) is ProcessFate.DEAD


def process_fate(token: str) -> ProcessFate:
    """Return whether a process with the id of a token runs; an ended holder of this process is dead."""
    if token in _ended:
        return ProcessFate.DEAD
    match = _TOKEN.fullmatch(token)  # a sidecar claims its name with any random value
    if match is None or match[1] != _place():
        return ProcessFate.UNKNOWN
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return ProcessFate.DEAD
    except PermissionError:
        pass
    return ProcessFate.RUNNING


def _place() -> str:
    """Name the kernel and the namespace of process ids; empty where they are not available."""
    try:
        return f"{_BOOT_ID.read_text().strip()} {_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""
