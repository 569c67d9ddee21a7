"""Tests of the observed alarm of the telemetry scene."""

from msgspec.structs import replace

from edge.features.simulator.telemetry_demo import EXPECTED, AlarmTrend
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, PublicAlarmChange, public_alarm_change

ALARM = Alarm(
    id="a1",
    rule="hot",
    subject="wrench.temperature",
    active=ActiveState.ACTIVE,
    acknowledgement=AckState.UNACKNOWLEDGED,
    severity=500,
    message={"en": "hot"},
    value=81.0,
    count=1,
    raised_at=1_000,
    changed_at=1_000,
)
RAISED = public_alarm_change(ALARM, AlarmChangeKind.RAISED)


def trend() -> AlarmTrend:
    return AlarmTrend("wrench.temperature", 80, 95)


def changed(kind: str, at: int, **members: object) -> PublicAlarmChange:
    return public_alarm_change(replace(ALARM, changed_at=at, **members), AlarmChangeKind(kind))


def test_expected_changes_of_one_alarm_have_no_faults() -> None:
    alarm_trend = trend()
    for number, kind in enumerate(EXPECTED):
        assert alarm_trend.take_change(changed(kind, number), number + 7)
    assert list(alarm_trend.faults()) == []
    assert [change.took_ms for change in alarm_trend.changes] == [7] * len(EXPECTED)


def test_repeated_change_and_other_subject_are_ignored() -> None:
    alarm_trend = trend()
    assert alarm_trend.take_change(RAISED, 1_000)
    assert not alarm_trend.take_change(RAISED, 1_500)
    assert not alarm_trend.take_change(changed("raised", 2_000, subject="other"), 2_000)
    assert alarm_trend.kinds == ("raised",)
    assert alarm_trend.alarm == RAISED.alarm


def test_missing_change_and_second_alarm_are_faults() -> None:
    alarm_trend = trend()
    assert "received the changes none" in next(alarm_trend.faults())
    alarm_trend.take_change(RAISED, 1_000)
    alarm_trend.take_change(changed("cleared", 2_000, id="a2"), 2_000)
    assert [fault.split(";")[0] for fault in alarm_trend.faults()] == [
        "the MES received the changes raised, cleared",
        "the changes belong to several alarms",
    ]


def test_trend_without_an_alarm_change_shows_no_alarm() -> None:
    assert trend().alarm is None
    assert replace(trend(), values=[1.0]).kinds == ()
