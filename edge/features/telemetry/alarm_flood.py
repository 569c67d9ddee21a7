"""Alarm floods: when new alarms are withheld, and when the flood is over; pure functions.

Many different alarms within a minute, or too many that are kept, are a flood. While it lasts, one summary alarm stands
for those that are withheld (ISA-18.2, alarm flood suppression). What still stands at its end is raised then.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from edge.features.telemetry.rules.alarm import Raise
from edge.ports.alarm import ActiveState, Alarm, alarm_id

MAX_ALARMS: Final = 1_000
"""Alarms that are kept one by one."""
FLOOD_ALARMS: Final = 100
"""Different alarms within a minute from which on further ones are withheld."""
FLOOD_RULE: Final = "alarm.flood"
FLOOD_SUBJECT: Final = "gateway"
_WINDOW_MS: Final = 60_000
_SEVERITY: Final = 700
_KEPT_AT_END: Final = 0.9
_RECENT_AT_END: Final = 0.5
_MOST_WITHHELD: Final = 10_000


class Flood(Struct, frozen=True):
    """The alarms that are withheld by their ids, with the instant of their last raise; the end of the flood before."""

    withheld: Mapping[str, int] = field(default_factory=dict)
    ended_at: int = 0

    def with_raises(self, raises: Mapping[str, int]) -> "Flood":
        """Return the flood with more alarms that are withheld; beyond 10,000 the oldest are not counted any longer."""
        if not raises:
            return self
        others = {ident: at for ident, at in self.withheld.items() if ident not in raises}
        newest = [*others.items(), *raises.items()][-_MOST_WITHHELD:]
        return Flood(dict(newest), self.ended_at)


NO_FLOOD: Final = Flood()
_SUMMARY: Final = Alarm(id=alarm_id(FLOOD_RULE, FLOOD_SUBJECT), rule=FLOOD_RULE, subject=FLOOD_SUBJECT)


def summary_of(alarms: Mapping[str, Alarm]) -> Alarm:
    """Return the summary alarm as it is, or a new one."""
    return alarms.get(_SUMMARY.id, _SUMMARY)


def is_flooded(alarms: Mapping[str, Alarm]) -> bool:
    """Return whether a flood lasts."""
    return summary_of(alarms).active is ActiveState.ACTIVE


def count_recent(alarms: Mapping[str, Alarm], flood: Flood, at: int) -> int:
    """Return how many different alarms were raised, or withheld, in the minute before an instant.

    Those that were raised at the end of a flood do not begin the next one.
    """
    since = at - _WINDOW_MS
    withheld = {ident for ident, raised_at in flood.withheld.items() if raised_at > since}
    since = max(since, flood.ended_at)
    raised = {
        each.id
        for each in alarms.values()
        if each.raised_at is not None and each.raised_at > since and each.rule != FLOOD_RULE
    }
    return len(withheld | raised)


def is_withheld(ident: str, alarms: Mapping[str, Alarm], recent: int, limit: int) -> bool:
    """Return whether the raise of an alarm is withheld after so many recent ones.

    While a flood lasts, an alarm that is kept already may be raised again.
    """
    if recent >= limit:
        return True
    return ident not in alarms and (len(alarms) >= MAX_ALARMS or is_flooded(alarms))


def is_over(alarms: Mapping[str, Alarm], flood: Flood, at: int, limit: int) -> bool:
    """Return whether few enough alarms came in the last minute, and few enough are kept."""
    return len(alarms) < MAX_ALARMS * _KEPT_AT_END and count_recent(alarms, flood, at) < max(1, limit * _RECENT_AT_END)


def raise_summary(alarms: Mapping[str, Alarm], recent: int, severity: int) -> Raise:
    """Return the raise of the summary alarm for an alarm of a severity that is withheld."""
    severity = max(_SEVERITY, severity, summary_of(alarms).severity if is_flooded(alarms) else 0)
    if len(alarms) >= MAX_ALARMS:
        text, value = f"{len(alarms)} alarms are standing; further ones are not shown one by one", len(alarms)
    else:
        text, value = f"{recent} alarms in a minute; further ones are not shown one by one until fewer come", recent
    return Raise(severity, {"en": text}, value)
