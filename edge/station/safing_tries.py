"""When a stop, a reset or a release is retried until equipment confirms it, and what is known of its tries."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import Text, join_texts
from edge.model.equipment_health import OpenSafing

INTERVALS_S: Final = (2.0, 5.0, 10.0)
"""The seconds from each try to the next while the equipment is connected; the last interval repeats."""


class SafingTries(Struct, frozen=True):
    """The tries to make a device safe; each changes the value.

    `since` is the instant of the first need, in milliseconds since the epoch. `count` are all tries of this process,
    `on_connection` those since the equipment connected last. `last_s` is the time of the last one, in seconds of a
    monotonic clock. `reason` is why the device has not confirmed it, empty while it has not said so.
    """

    since: int
    count: int = 0
    on_connection: int = 0
    last_s: float = -math.inf
    reason: str | Text = ""

    @property
    def due_s(self) -> float:
        """The time of the next try, in seconds of the monotonic clock: now for the first one on a connection."""
        if not self.on_connection:
            return -math.inf
        return self.last_s + INTERVALS_S[min(self.on_connection, len(INTERVALS_S)) - 1]

    def tried(self, now_s: float, reason: str | Text | None = None) -> "SafingTries":
        """Return the tries with one more; `reason` is why it failed, None where that is not known yet."""
        return replace(
            self,
            count=self.count + 1,
            on_connection=self.on_connection + 1,
            last_s=now_s,
            reason=self.reason if reason is None else reason,
        )

    def reconnected(self) -> "SafingTries":
        """Return the tries at a new connection: the next one is due at once, and the intervals begin again."""
        return replace(self, on_connection=0)

    def described(self, what: str, command_id: str = "") -> OpenSafing:
        """Return the facts for people; `what` is `stop`, `reset` or `release`."""
        return OpenSafing(what=what, command_id=command_id, since=self.since, tries=self.count, reason=self.reason)


def problem_of(open_safing: Sequence[OpenSafing]) -> str | Text:
    """Return the problem of equipment that has not confirmed something, as one line; empty when nothing is open.

    The line has no number of tries: it changes only when there is something new for people.
    """
    if not open_safing:
        return ""
    first = min(open_safing, key=lambda safing: safing.since)
    subject = _WHAT.get(first.what, Text(first.what))
    if first.command_id:
        subject = Text.of("{what} of {command_id}", what=subject, command_id=first.command_id)
    if len(open_safing) > 1:
        subject = Text.of("{subject} and {count} more", subject=subject, count=len(open_safing) - 1)
    return Text.of(
        "the tool may still be active, not confirmed since {since}: {subject}",
        since=datetime.fromtimestamp(first.since / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
        subject=join_texts(": ", (subject, first.reason)) if first.reason else subject,
    )


_WHAT: Final[Mapping[str, Text]] = MappingProxyType(
    {"stop": Text.of("stop"), "reset": Text.of("reset"), "release": Text.of("release")}
)
