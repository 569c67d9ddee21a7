"""What the telemetry scene has observed: the values of one tag, the changes of its alarm, and whether all is right."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from edge.ports.alarm_message import AlarmNotice

EXPECTED: Final = ("raised", "escalated", "acknowledged", "eased", "cleared")


class ObservedChange(Struct, frozen=True):
    """A change of the alarm, and the milliseconds from its instant to its arrival at the MES."""

    notice: AlarmNotice
    took_ms: int


class AlarmTrend(Struct):
    """The values that the sensor sent, and the changes of its alarm that the MES received."""

    tag: str
    high: float
    high_high: float
    values: list[float] = field(default_factory=list)
    changes: list[ObservedChange] = field(default_factory=list)

    def take_change(self, notice: AlarmNotice, now: int) -> bool:
        """Keep a change of the alarm of this tag; return whether it is one, and new."""
        known = any(
            (each.notice.change, each.notice.changed_at) == (notice.change, notice.changed_at) for each in self.changes
        )
        if notice.subject != self.tag or known:
            return False
        self.changes.append(ObservedChange(notice, max(0, now - notice.changed_at)))
        return True

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the changes, in their order."""
        return tuple(each.notice.change.value for each in self.changes)

    @property
    def alarm(self) -> AlarmNotice | None:
        """The alarm as the MES knows it; None before its first change."""
        return self.changes[-1].notice if self.changes else None

    def faults(self) -> Iterator[str]:
        """Yield what differs from one alarm that goes up, is acknowledged and goes down again."""
        if self.kinds != EXPECTED:
            yield f"the MES received the changes {', '.join(self.kinds) or 'none'}; expected {', '.join(EXPECTED)}"
        if len({each.notice.alarm_id for each in self.changes}) > 1:
            yield "the changes belong to several alarms"
