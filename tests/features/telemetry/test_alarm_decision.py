"""Findings become changes of alarms: one alarm per rule and subject."""

from typing import Any

from msgspec.structs import replace

from edge.features.telemetry.alarm_decision import FoundAlarm, clear_orphans, expire_shelvings, next_expiry
from edge.features.telemetry.alarm_decision import decide_alarms as decide
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.ports.alarm import ActiveState, Alarm, AlarmState, Shelving, alarm_id
from edge.store.kept_alarms import AlarmChange
from tests.features.telemetry.plant import HOT, rules_of

RULE = HOT | {"message": {"en": "{subject} has {value} in {job}", "de": "{subject}: {value}"}, "action": "pause"}
OCCURS: dict[str, Any] = {"id": "left", "kind": "occurs", "pattern": "carrier.left", "severity": 5}


def found(event: FindingEvent, severity: int = 500, job: str | None = "J1", **rule: Any) -> FoundAlarm:
    (parsed,) = rules_of(RULE | rule)
    return FoundAlarm(Finding(7, "hot", "wrench.temp", event, severity), parsed, 81.5, job)


def decide_alarms(alarms: dict[str, Alarm], found: list[FoundAlarm]) -> list[AlarmChange]:
    return decide(alarms, found).changes


def kept(changes: list[AlarmChange]) -> dict[str, Alarm]:
    return {change.alarm.id: change.alarm for change in changes}


def test_a_finding_raises_an_alarm_with_its_message_and_action() -> None:
    (change,) = decide_alarms({}, [found(FindingEvent.RAISED)])
    alarm = change.alarm
    assert (change.kind, change.action, alarm.state) == ("raised", "pause", AlarmState.UNACKNOWLEDGED)
    assert alarm.message == {"en": "wrench.temp has 81.5 in J1", "de": "wrench.temp: 81.5"}
    assert (alarm.id, alarm.job, alarm.raised_at) == (alarm_id("hot", "wrench.temp"), "J1", 7)


def test_findings_of_one_batch_are_applied_in_order() -> None:
    events = [FindingEvent.RAISED, FindingEvent.ESCALATED, FindingEvent.EASED, FindingEvent.CLEARED]
    changes = decide_alarms({}, [found(event, severity) for event, severity in zip(events, [1, 3, 2, 2], strict=True)])
    assert [(change.kind, change.action) for change in changes] == [
        ("raised", "pause"),
        ("escalated", "pause"),
        ("eased", ""),
        ("cleared", ""),
    ]


def test_finding_outside_of_a_job_requests_no_action() -> None:
    assert decide_alarms({}, [found(FindingEvent.RAISED, job=None)])[0].action == ""


def test_alarm_of_an_occurrence_clears_at_once_and_waits_for_ack() -> None:
    (rule,) = rules_of(OCCURS)
    raised = FoundAlarm(Finding(7, "left", "J1", FindingEvent.RAISED, 5), rule, None, "J1")
    changes = decide_alarms({}, [raised])
    assert [change.kind for change in changes] == ["raised", "cleared"]
    assert changes[-1].alarm.state is AlarmState.RETURNED_UNACKNOWLEDGED
    assert changes[0].alarm.message == {"en": "left: J1 is –"}


def test_only_active_alarms_without_a_finding_are_cleared() -> None:
    alarms = kept(decide_alarms({}, [found(FindingEvent.RAISED)]))
    (known,) = alarms
    assert clear_orphans(alarms, [known], 9) == []
    (change,) = clear_orphans(alarms, ["other"], 9)
    assert (change.kind, change.alarm.active, change.alarm.cleared_at) == ("cleared", ActiveState.INACTIVE, 9)
    assert clear_orphans(kept([change]), [], 10) == []


def test_shelving_ends_at_its_instant() -> None:
    alarms = kept(decide_alarms({}, [found(FindingEvent.RAISED)]))
    ((name, alarm),) = alarms.items()
    shelved = {name: replace(alarm, shelving=Shelving(by="bo", at=8, until=20))}
    assert (next_expiry(alarms), next_expiry(shelved)) == (None, 20)
    assert expire_shelvings(shelved, 19) == []
    assert [shelving.kind for shelving in expire_shelvings(shelved, 20)] == ["unshelved"]
