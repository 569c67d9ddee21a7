"""Computes the changes of alarms from the findings of rules, and the beginning and end of a flood; pure functions.

Many different alarms within a minute, or too many that are kept, are a flood. While it lasts, one summary alarm
stands for those that are withheld (ISA-18.2, alarm flood suppression). What still stands at its end is raised then.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from edge.features.telemetry.model.rule import EntersRule, OccursRule, Rule
from edge.features.telemetry.rules.alarm import (
    AlarmChanged,
    AlarmEvent,
    ChangeSeverity,
    Clear,
    ExpireShelving,
    Raise,
    render_message,
    transition,
)
from edge.features.telemetry.rules.evaluator import Renamed
from edge.features.telemetry.rules.subject import name_in_subject
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.ports.alarm import ActiveState, Alarm, AlarmChangeKind, alarm_id
from edge.store.kept_alarms import AlarmChange

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
        alarm.id
        for alarm in alarms.values()
        if alarm.raised_at is not None and alarm.raised_at > since and alarm.rule != FLOOD_RULE
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


_DEFAULT_MESSAGE: Final = "{rule}: {subject} is {value}"
_ANNOUNCED: Final = frozenset({AlarmChangeKind.RAISED, AlarmChangeKind.ESCALATED})


class FoundAlarm(Struct, frozen=True):
    """A finding with its rule, the value behind it, and the job to which it belongs."""

    finding: Finding
    rule: Rule
    value: Any = None
    job: str | None = None
    data: Any = None
    """The data of an occurrence."""


class AlarmDecision(Struct, frozen=True):
    """The changes of alarms in their order, the flood after them, and how many raises were withheld."""

    changes: list[AlarmChange]
    flood: Flood
    withheld: int = 0


def decide_alarms(
    alarms: Mapping[str, Alarm], found: Iterable[FoundAlarm], flood: Flood = NO_FLOOD, limit: int = FLOOD_ALARMS
) -> AlarmDecision:
    """Return the changes of alarms that findings make; in a flood, raises without an action are withheld."""
    changed = dict(alarms)
    changes: list[AlarmChange] = []
    recent: int | None = None
    withheld: list[tuple[str, int]] = []
    for found_alarm in found:
        finding = found_alarm.finding
        ident = alarm_id(finding.rule, finding.subject)
        alarm = changed.get(ident) or Alarm(id=ident, rule=finding.rule, subject=finding.subject)
        if finding.event is FindingEvent.RAISED:
            if recent is None:
                recent = count_recent(changed, flood, finding.at)
            # The station must get the actions of alarms in a flood too.
            if not _action(found_alarm) and is_withheld(ident, changed, recent, limit):
                withheld.append((ident, finding.at))
                summary = raise_summary(changed, recent, finding.severity)
                _apply(summary_of(changed), summary, finding.at, "", changed, changes)
                continue
            recent += ident not in changed
        for event in _events(found_alarm):
            _apply(changed.get(ident, alarm), event, finding.at, _action(found_alarm), changed, changes)
    return AlarmDecision(changes, flood.with_raises(dict(withheld)), len(withheld))


def end_flood(
    alarms: Mapping[str, Alarm],
    standing: Iterable[FoundAlarm],
    flood: Flood,
    now: int,
    limit: int = FLOOD_ALARMS,
) -> AlarmDecision:
    """Return the changes at the end of a flood: what stands is raised, the summary alarm cleared; none while it lasts.

    `standing` are the active findings, as raises.
    """
    if not is_over(alarms, flood, now, limit):
        return AlarmDecision([], flood)
    changed = dict(alarms)
    changes: list[AlarmChange] = []
    is_complete = True
    for item in standing:
        ident = alarm_id(item.finding.rule, item.finding.subject)
        alarm = changed.get(ident)
        if alarm is None and len(changed) >= MAX_ALARMS:
            is_complete = False
        elif alarm is None or alarm.active is not ActiveState.ACTIVE:
            alarm = alarm or Alarm(id=ident, rule=item.finding.rule, subject=item.finding.subject)
            for event in _events(item):
                _apply(alarm, event, now, _action(item), changed, changes)
    if is_complete:
        _apply(summary_of(changed), Clear(), now, "", changed, changes)
    return AlarmDecision(changes, Flood(ended_at=now))


def rename_subjects(alarms: Mapping[str, Alarm], renamed: Iterable[Renamed], now: int) -> list[AlarmChange]:
    """Return the changes that move alarms to the new names of their subjects, with all that persons have answered."""
    changes: list[AlarmChange] = []
    for element in renamed:
        before, ident = alarms.get(alarm_id(element.rule, element.before)), alarm_id(element.rule, element.after)
        if before is None:
            continue
        changes += remove_alarms((before,), now)
        if element.after and ident not in alarms:
            moved = replace(before, id=ident, subject=element.after, changed_at=now)
            is_active = moved.active is ActiveState.ACTIVE
            changes.append(AlarmChange(moved, AlarmChangeKind.RAISED if is_active else AlarmChangeKind.CLEARED))
    return changes


def clear_orphans(alarms: Mapping[str, Alarm], active: Iterable[str], now: int) -> list[AlarmChange]:
    """Return the changes that clear active alarms whose rule no longer finds them; `active` are those it finds."""
    kept = set(active)
    changes: list[AlarmChange] = []
    for alarm in alarms.values():
        if alarm.active is ActiveState.ACTIVE and alarm.id not in kept and alarm.rule != FLOOD_RULE:
            _apply(alarm, Clear(), now, "", {}, changes)
    return changes


def expire_shelvings(alarms: Mapping[str, Alarm], now: int) -> list[AlarmChange]:
    """Return the changes of alarms whose shelving has ended."""
    changes: list[AlarmChange] = []
    for alarm in alarms.values():
        if alarm.shelving is not None:
            _apply(alarm, ExpireShelving(), now, "", {}, changes)
    return changes


def remove_alarms(alarms: Iterable[Alarm], now: int) -> list[AlarmChange]:
    """Return the changes that remove alarms: what they are about is gone."""
    gone = (Alarm(id=alarm.id, rule=alarm.rule, subject=alarm.subject, changed_at=now) for alarm in alarms)
    return [AlarmChange(alarm, AlarmChangeKind.CLEARED) for alarm in gone]


def next_expiry(alarms: Mapping[str, Alarm]) -> int | None:
    """Return the next instant at which a shelving ends; None when none does."""
    ends = [alarm.shelving.until for alarm in alarms.values() if alarm.shelving and alarm.shelving.until is not None]
    return min(ends, default=None)


def _action(found: FoundAlarm) -> str:
    """Return the action at the job of a finding; empty for none."""
    return found.rule.action if found.job and found.rule.action != "none" else ""


def _apply(
    alarm: Alarm, event: AlarmEvent, at: int, action: str, changed: dict[str, Alarm], changes: list[AlarmChange]
) -> None:
    result = transition(alarm, event, at)
    if not isinstance(result, AlarmChanged):
        return
    changed[alarm.id] = result.alarm
    changes.append(AlarmChange(result.alarm, result.kind, action if result.kind in _ANNOUNCED else ""))


def _events(found: FoundAlarm) -> tuple[AlarmEvent, ...]:
    finding, rule = found.finding, found.rule
    facts = {
        "rule": finding.rule,
        "subject": finding.subject,
        "name": name_in_subject(rule, finding.subject),
        "severity": finding.severity,
        "value": found.value,
        "job": found.job,
        "at": finding.at,
        "data": found.data,
    }
    message = render_message(rule.message or _DEFAULT_MESSAGE, facts)
    match finding.event:
        case FindingEvent.RAISED:
            raised = Raise(finding.severity, message, found.value, found.job, rule.latch, rule.confirm)
            # What occurs is over at once; its alarm waits for a person.
            return (raised, Clear()) if isinstance(rule, EntersRule | OccursRule) else (raised,)
        case FindingEvent.ESCALATED | FindingEvent.EASED:
            return (ChangeSeverity(finding.severity, message, found.value),)
        case FindingEvent.CLEARED:
            return (Clear(),)
