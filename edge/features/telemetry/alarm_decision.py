"""Computes the changes of alarms from the findings of rules; pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.alarm_flood import (
    FLOOD_ALARMS,
    FLOOD_RULE,
    MAX_ALARMS,
    NO_FLOOD,
    Flood,
    count_recent,
    is_over,
    is_withheld,
    raise_summary,
    summary_of,
)
from edge.features.telemetry.model.rule import EntersRule, OccursRule, Rule
from edge.features.telemetry.rules.alarm import (
    AlarmChanged,
    AlarmEvent,
    ChangeSeverity,
    Clear,
    ExpireShelving,
    Raise,
    transition,
)
from edge.features.telemetry.rules.alarm_message import render_message
from edge.features.telemetry.rules.evaluator import Renamed
from edge.features.telemetry.rules.finding import Finding, FindingEvent
from edge.features.telemetry.rules.subject import name_in_subject
from edge.ports.alarm import ActiveState, Alarm, AlarmChangeKind, alarm_id
from edge.store.kept_alarms import AlarmChange

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
    for each in found:
        finding = each.finding
        ident = alarm_id(finding.rule, finding.subject)
        alarm = changed.get(ident) or Alarm(id=ident, rule=finding.rule, subject=finding.subject)
        if finding.event is FindingEvent.RAISED:
            if recent is None:
                recent = count_recent(changed, flood, finding.at)
            # The station must get the actions of alarms in a flood too.
            if not _action(each) and is_withheld(ident, changed, recent, limit):
                withheld.append((ident, finding.at))
                summary = raise_summary(changed, recent, finding.severity)
                _apply(summary_of(changed), summary, finding.at, "", changed, changes)
                continue
            recent += ident not in changed
        for event in _events(each):
            _apply(changed.get(ident, alarm), event, finding.at, _action(each), changed, changes)
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
    for each in standing:
        ident = alarm_id(each.finding.rule, each.finding.subject)
        alarm = changed.get(ident)
        if alarm is None and len(changed) >= MAX_ALARMS:
            is_complete = False
        elif alarm is None or alarm.active is not ActiveState.ACTIVE:
            alarm = alarm or Alarm(id=ident, rule=each.finding.rule, subject=each.finding.subject)
            for event in _events(each):
                _apply(alarm, event, now, _action(each), changed, changes)
    if is_complete:
        _apply(summary_of(changed), Clear(), now, "", changed, changes)
    return AlarmDecision(changes, Flood(ended_at=now))


def rename_subjects(alarms: Mapping[str, Alarm], renamed: Iterable[Renamed], now: int) -> list[AlarmChange]:
    """Return the changes that move alarms to the new names of their subjects, with all that persons have answered."""
    changes: list[AlarmChange] = []
    for each in renamed:
        before, ident = alarms.get(alarm_id(each.rule, each.before)), alarm_id(each.rule, each.after)
        if before is None:
            continue
        gone = Alarm(id=before.id, rule=before.rule, subject=before.subject, changed_at=now)
        changes.append(AlarmChange(gone, AlarmChangeKind.CLEARED))
        if each.after and ident not in alarms:
            moved = replace(before, id=ident, subject=each.after, changed_at=now)
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


def next_expiry(alarms: Mapping[str, Alarm]) -> int | None:
    """Return the next instant at which a shelving ends; None when none does."""
    ends = [each.shelving.until for each in alarms.values() if each.shelving and each.shelving.until is not None]
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
