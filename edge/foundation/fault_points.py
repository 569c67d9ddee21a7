"""Points between decision and acknowledgement at which a test can kill the process.

`EDGE_FAULT=committed:17` in the environment kills it, as a power cut does, at the 17th pass of `committed`.
"""

import os
import signal
from collections.abc import Callable
from enum import StrEnum


class FaultPoint(StrEnum):
    """Where a crash could leave something half done."""

    DECIDED = "decided"
    """Before a commit."""
    COMMITTED = "committed"
    """After a commit, before its commands are sent."""
    SENT = "sent"
    """After a command was sent, before that is recorded."""
    HANDLED = "handled"
    """After a message took effect, before it is acknowledged."""
    ARCHIVING = "archiving"
    """Before ended jobs are written to the archive."""
    ARCHIVED = "archived"
    """After ended jobs were written to the archive, before the store knows."""


def fault_point_of(armed: str) -> Callable[[FaultPoint], None]:
    """Return the function called at each point; it does nothing unless a point and a pass are `armed`."""
    name, _, count = armed.partition(":")
    if not armed:
        return _not_armed
    point, left = FaultPoint(name), int(count)

    def fault_point(reached: FaultPoint) -> None:
        nonlocal left
        left -= reached is point
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault_point


def _not_armed(_: FaultPoint) -> None:
    """Ignore the point: none is armed."""


fault_point = fault_point_of(os.environ.get("EDGE_FAULT", ""))
