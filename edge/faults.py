"""Points between decision and acknowledgement at which a test has the process killed.

`EDGE_FAULT=committed:17` in the environment kills it, as a power cut does, when it gets to `committed` for the 17th
time.
"""

import os
import signal
from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """Where a crash could leave something half done."""

    DECIDED = "decided"
    """Before a commit."""
    COMMITTED = "committed"
    """After a commit, before what it asks for is done."""
    SENT = "sent"
    """After a command was sent, before that is noted."""
    HANDLED = "handled"
    """After a message took effect, before it is acknowledged."""


def reach_of(armed: str) -> Callable[[Point], None]:
    """Give what is called at each point; it does nothing unless a point and the number of the pass are `armed`."""
    name, _, count = armed.partition(":")
    if not armed:
        return _pass_by
    point, left = Point(name), int(count)

    def reach(reached: Point) -> None:
        nonlocal left
        left -= reached is point
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _pass_by(_: Point) -> None:
    """Nothing is armed."""


reach = reach_of(os.environ.get("EDGE_FAULT", ""))
