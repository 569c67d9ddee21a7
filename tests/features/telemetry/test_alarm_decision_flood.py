"""A flood of alarms becomes one summary alarm; conditions still active at its end are raised."""

from itertools import count
from typing import Any

from msgspec.structs import replace

from edge.features.telemetry.alarm_decision import (
    FLOOD_RULE,
    MAX_ALARMS,
    NO_FLOOD,
    Flood,
    FoundAlarm,
    clear_orphans,
    count_recent,
    decide_alarms,
    end_flood,
    is_flooded,
)
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.ports.alarm import AckState, ActiveState, Alarm, alarm_id
from edge.store.kept_alarms import AlarmChange
from tests.features.telemetry.plant import HOT, rules_of

MINUTE = 60_000
LIMIT = 10


def found(subject: str, event: FindingEvent = FindingEvent.RAISED, at: int = 7, **rule: Any) -> FoundAlarm:
    (parsed,) = rules_of(HOT | rule)
    return FoundAlarm(Finding(at, "hot", subject, event, 500), parsed, 81.5, "J1")


def raises(numbers: range, at: int = 7, **rule: Any) -> list[FoundAlarm]:
    return [found(f"t{number}", at=at, **rule) for number in numbers]


def after(alarms: dict[str, Alarm], changes: list[AlarmChange]) -> dict[str, Alarm]:
    kept = alarms | {change.alarm.id: change.alarm for change in changes}
    return {ident: alarm for ident, alarm in kept.items() if alarm.is_retained}


def names(changes: list[AlarmChange]) -> list[tuple[str, str]]:
    return [
        (change.alarm.subject if change.alarm.rule == "hot" else change.alarm.rule, change.kind.value)
        for change in changes
    ]


def test_alarms_beyond_the_limit_in_a_minute_become_one_summary() -> None:
    first = decide_alarms({}, raises(range(25)), limit=LIMIT)
    assert names(first.changes) == [*[(f"t{n}", "raised") for n in range(10)], (FLOOD_RULE, "raised")]
    assert first.withheld == 15
    summary = first.changes[-1].alarm
    assert (summary.severity, summary.value, "10 alarms in a minute" in summary.message["en"]) == (700, 10, True)
    second = decide_alarms(after({}, first.changes), raises(range(30, 35), at=30_000), first.flood, LIMIT)
    assert (second.changes, second.withheld) == ([], 5)


def test_one_chattering_alarm_is_not_a_flood() -> None:
    alarms: dict[str, Alarm] = {}
    flood = NO_FLOOD
    for at in range(200):
        for event in (FindingEvent.RAISED, FindingEvent.CLEARED):
            decision = decide_alarms(alarms, [found("t", event, at)], flood, LIMIT)
            assert [change.kind.value for change in decision.changes] == [event.value]
            alarms, flood = after(alarms, decision.changes), decision.flood


def test_alarm_with_an_action_is_never_withheld() -> None:
    """The station must pause or abort the job of such an alarm in a flood too."""
    first = decide_alarms({}, raises(range(25)), limit=LIMIT)
    decision = decide_alarms(after({}, first.changes), [found("line", action="abort")], first.flood, LIMIT)
    assert [(*names([change])[0], change.action) for change in decision.changes] == [("line", "raised", "abort")]


def test_known_alarms_are_updated_during_a_flood() -> None:
    first = decide_alarms({}, raises(range(25)), limit=LIMIT)
    alarms = after({}, first.changes)
    severe = FoundAlarm(Finding(8, "hot", "t3", FindingEvent.ESCALATED, 800), found("t3").rule)
    assert names(decide_alarms(alarms, [severe], first.flood, LIMIT).changes) == [("t3", "escalated")]
    cleared = decide_alarms(alarms, [found("t3", FindingEvent.CLEARED, 9)], first.flood, LIMIT)
    assert names(cleared.changes) == [("t3", "cleared")]
    withheld = decide_alarms(alarms, [found("t20", FindingEvent.CLEARED, 9)], first.flood, LIMIT)
    assert withheld.changes == []


def test_conditions_active_at_the_end_of_a_flood_are_raised() -> None:
    first = decide_alarms({}, raises(range(25)), limit=LIMIT)
    alarms = after({}, first.changes)
    standing = raises(range(5, 22), at=MINUTE)
    assert end_flood(alarms, standing, first.flood, MINUTE, LIMIT).changes == []
    assert clear_orphans(alarms, [alarm_id("hot", f"t{n}") for n in range(25)], 9) == []
    ended = end_flood(alarms, standing, first.flood, MINUTE + 7, LIMIT)
    assert names(ended.changes) == [*[(f"t{n}", "raised") for n in range(10, 22)], (FLOOD_RULE, "cleared")]
    assert not is_flooded(after(alarms, ended.changes))


def test_alarms_raised_at_the_end_of_a_flood_start_no_new_flood() -> None:
    first = decide_alarms({}, raises(range(100)), limit=LIMIT)
    alarms = after({}, first.changes)
    ended = end_flood(alarms, raises(range(100)), first.flood, 2 * MINUTE, LIMIT)
    alarms = after(alarms, ended.changes)
    assert len(alarms) == 101
    later = decide_alarms(alarms, [found("new", at=2 * MINUTE + 1)], ended.flood, LIMIT)
    assert names(later.changes) == [("new", "raised")]
    assert count_recent(after(alarms, later.changes), ended.flood, 2 * MINUTE + 1) == 1


def test_flood_lasts_while_the_alarm_rate_exceeds_half_the_limit() -> None:
    decision = decide_alarms({}, raises(range(25)), limit=LIMIT)
    alarms, flood, numbers = after({}, decision.changes), decision.flood, count(100)
    at = 0
    for at in range(MINUTE // 6, 5 * MINUTE, MINUTE // 6):
        decision = decide_alarms(alarms, [found(f"t{next(numbers)}", at=at)], flood, LIMIT)
        assert decision.changes == []
        flood = decision.flood
        assert end_flood(alarms, [], flood, at, LIMIT).changes == []
    assert names(end_flood(alarms, [], flood, at + MINUTE // 2, LIMIT).changes) == [(FLOOD_RULE, "cleared")]


def test_alarms_beyond_the_storage_limit_become_one_summary() -> None:
    old = {str(n): Alarm(id=str(n), rule="r", subject=str(n), active=ActiveState.ACTIVE) for n in range(MAX_ALARMS)}
    decision = decide_alarms(old, [found("t")])
    assert names(decision.changes) == [(FLOOD_RULE, "raised")]
    alarms = after(old, decision.changes)
    assert end_flood(alarms, [found("t")], decision.flood, MINUTE * 9).changes == []
    few = {ident: alarms[ident] for ident in list(alarms)[200:]}
    assert names(end_flood(few, [found("t")], decision.flood, MINUTE * 9).changes) == [
        ("t", "raised"),
        (FLOOD_RULE, "cleared"),
    ]


def test_summary_stays_while_active_alarms_exceed_the_storage_limit() -> None:
    decision = decide_alarms({}, raises(range(2000)))
    alarms = after({}, decision.changes)
    ended = end_flood(alarms, raises(range(2000)), decision.flood, 2 * MINUTE)
    alarms = after(alarms, ended.changes)
    assert (len(alarms), is_flooded(alarms)) == (MAX_ALARMS, True)


def test_summary_has_the_highest_severity_of_the_withheld_alarms() -> None:
    decision = decide_alarms({}, raises(range(12)), limit=LIMIT)
    severe = FoundAlarm(Finding(9, "hot", "x", FindingEvent.RAISED, 950), found("x").rule)
    mild = FoundAlarm(Finding(9, "hot", "y", FindingEvent.RAISED, 100), found("y").rule)
    alarms = after({}, decision.changes)
    later = decide_alarms(alarms, [severe, mild], decision.flood, LIMIT)
    assert [(*names([change])[0], change.alarm.severity) for change in later.changes] == [
        (FLOOD_RULE, "escalated", 950)
    ]


def test_withheld_alarms_are_bounded() -> None:
    flood = Flood().with_raises({str(n): n for n in range(30_000)})
    assert len(flood.withheld) == 10_000
    assert min(flood.withheld.values()) == 20_000


def test_acknowledged_summary_is_raised_again_by_the_next_flood() -> None:
    decision = decide_alarms({}, raises(range(12)), limit=LIMIT)
    alarms = after({}, decision.changes)
    summary = next(alarm for alarm in alarms.values() if alarm.rule == FLOOD_RULE)
    alarms[summary.id] = replace(summary, acknowledgement=AckState.CONFIRMED)
    ended = end_flood(alarms, [], decision.flood, 2 * MINUTE, LIMIT)
    alarms = after(alarms, ended.changes)
    assert summary.id not in alarms
    again = decide_alarms(alarms, raises(range(50, 70), at=3 * MINUTE), ended.flood, LIMIT)
    assert names(again.changes)[-1] == (FLOOD_RULE, "raised")
