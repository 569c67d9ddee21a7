"""Names a running process so that another on the same host can tell whether it still lives."""

import os
import uuid
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


def process_token() -> str:
    """Name this process for ever, and where its id counts: the kernel that runs it and the namespace it lives in."""
    return f"{_place()} {os.getpid()} {uuid.uuid4()}"


def is_surely_dead(token: str) -> bool:
    """Tell whether the process of a token is gone; False also where that cannot be known."""
    place, pid, _ = token.rsplit(" ", 2)
    if not place or place != _place():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _place() -> str:
    """Name the kernel and the namespace of process ids; empty where they are not told."""
    try:
        return f"{_BOOT_ID.read_text().strip()} {_PID_NAMESPACE.readlink()}"
    except OSError:
        return ""
