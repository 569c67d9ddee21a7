"""Points between decision and acknowledgement at which a test has the process killed.

`EDGE_FAULT=committed:17` in the environment kills it, as a power cut does, when it gets to `committed` for the 17th
time.
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
    """After a commit, before what it asks for is done."""
    SENT = "sent"
    """After a command was sent, before that is noted."""
    HANDLED = "handled"
    """After a message took effect, before it is acknowledged."""


def fault_point_of(armed: str) -> Callable[[FaultPoint], None]:
    """Give what is called at each point; it does nothing unless a point and the number of the pass are `armed`."""
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
    """Nothing is armed."""


fault_point = fault_point_of(os.environ.get("EDGE_FAULT", ""))
