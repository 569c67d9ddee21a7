"""Computes the changes of alarms from the findings of rules; pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from edge.model.alarm import ActiveState, Alarm, AlarmChangeKind, alarm_id
from edge.model.rule import EntersRule, OccursRule, Rule
from edge.rules.alarm import AlarmChanged, AlarmEvent, ChangeSeverity, Clear, ExpireShelving, Raise, transition
from edge.rules.alarm_message import render_message
from edge.rules.finding import Finding, FindingEvent
from edge.store.alarms import AlarmChange

MAX_ALARMS: Final = 1_000
"""Alarms that are kept; further ones count in one summary alarm."""
FLOOD_RULE: Final = "alarm.flood"
_FLOOD_SUBJECT: Final = "gateway"
_FLOOD_SEVERITY: Final = 700
_FLOOD_ENDS: Final = 0.9
_DEFAULT_MESSAGE: Final = "{rule}: {subject} is {value}"
_ANNOUNCED: Final = frozenset({AlarmChangeKind.RAISED, AlarmChangeKind.ESCALATED})


@dataclass(frozen=True, slots=True)
class FoundAlarm:
    """A finding with its rule, the value behind it, and the job to which it belongs."""

    finding: Finding
    rule: Rule
    value: Any = None
    job: str | None = None
    data: Any = None
    """The data of an occurrence."""


def decide_alarms(alarms: Mapping[str, Alarm], found: Iterable[FoundAlarm]) -> list[AlarmChange]:
    """Return the changes of alarms that findings make, in their order."""
    changed = dict(alarms)
    changes: list[AlarmChange] = []
    for each in found:
        finding = each.finding
        alarm = changed.get(alarm_id(finding.rule, finding.subject)) or _new(finding.rule, finding.subject)
        if alarm.id not in changed and len(changed) >= MAX_ALARMS and finding.event is FindingEvent.RAISED:
            summary = changed.get(alarm_id(FLOOD_RULE, _FLOOD_SUBJECT)) or _new(FLOOD_RULE, _FLOOD_SUBJECT)
            _apply(summary, _flood(len(changed)), finding.at, "", changed, changes)
            continue
        for event in _events(each):
            current = changed.get(alarm.id, alarm)
            _apply(current, event, finding.at, each.rule.action if each.job else "none", changed, changes)
    _end_flood(changed, changes)
    return changes


def clear_orphans(alarms: Mapping[str, Alarm], active: Iterable[str], now: int) -> list[AlarmChange]:
    """Return the changes that clear active alarms whose rule no longer finds them; `active` are those it finds."""
    kept = set(active)
    changes: list[AlarmChange] = []
    is_flood_over = len(alarms) < MAX_ALARMS * _FLOOD_ENDS
    for alarm in alarms.values():
        is_found = alarm.id in kept if alarm.rule != FLOOD_RULE else not is_flood_over
        if alarm.active is ActiveState.ACTIVE and not is_found:
            _apply(alarm, Clear(), now, "", {}, changes)
    return changes


def expire_shelvings(alarms: Mapping[str, Alarm], now: int) -> list[AlarmChange]:
    """Return the changes of alarms whose shelving has ended."""
    changes: list[AlarmChange] = []
    for alarm in alarms.values():
        if alarm.shelving is not None:
            _apply(alarm, ExpireShelving(), now, "", {}, changes)
    return changes


def next_expiry(alarms: Mapping[str, Alarm]) -> int | None:
    """Return the next instant at which a shelving ends; None when none does."""
    ends = [each.shelving.until for each in alarms.values() if each.shelving and each.shelving.until is not None]
    return min(ends, default=None)


def _end_flood(changed: dict[str, Alarm], changes: list[AlarmChange]) -> None:
    """Clear the summary alarm once fewer alarms remain; the caller continues with the next finding."""
    summary = changed.get(alarm_id(FLOOD_RULE, _FLOOD_SUBJECT))
    if summary is not None and len(changed) < MAX_ALARMS * _FLOOD_ENDS and changes:
        _apply(summary, Clear(), changes[-1].alarm.changed_at, "", changed, changes)


def _new(rule: str, subject: str) -> Alarm:
    return Alarm(id=alarm_id(rule, subject), rule=rule, subject=subject)


def _flood(standing: int) -> Raise:
    text = f"{standing} alarms are standing; further ones are not shown one by one"
    return Raise(_FLOOD_SEVERITY, {"en": text}, standing)


def _apply(
    alarm: Alarm, event: AlarmEvent, at: int, action: str, changed: dict[str, Alarm], changes: list[AlarmChange]
) -> None:
    result = transition(alarm, event, at)
    if not isinstance(result, AlarmChanged):
        return
    changed[alarm.id] = result.alarm
    is_asked = action in {"pause", "abort"} and result.kind in _ANNOUNCED
    changes.append(AlarmChange(result.alarm, result.kind, action if is_asked else ""))


def _events(found: FoundAlarm) -> tuple[AlarmEvent, ...]:
    finding, rule = found.finding, found.rule
    facts = {
        "rule": finding.rule,
        "subject": finding.subject,
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
