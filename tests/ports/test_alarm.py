"""Alarms have a stable id, and their state is that of ISA-18.2."""

import msgspec

from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, AlarmNotice, AlarmState, Shelving, alarm_id


def test_id_of_an_alarm_depends_on_rule_and_subject_only() -> None:
    assert alarm_id("hot", "wrench.temp") == alarm_id("hot", "wrench.temp")
    assert len({alarm_id("a", "bc"), alarm_id("ab", "c"), alarm_id("a", "b"), alarm_id("a", "\udc80")}) == 4


def test_alarm_is_unchanged_after_json_encoding_and_decoding() -> None:
    shelving = Shelving(by="bo", at=1, until=5)
    alarm = Alarm(id="a", rule="r", subject="s", active=ActiveState.LATCHED, value=1.0, shelving=shelving)
    assert msgspec.json.decode(msgspec.json.encode(alarm), type=Alarm) == alarm


def test_suppressed_state_takes_precedence_over_shelved() -> None:
    shelving = Shelving(by="bo", at=1)
    alarm = Alarm(id="a", rule="r", subject="s", acknowledgement=AckState.UNACKNOWLEDGED, shelving=shelving)
    assert alarm.state is AlarmState.SHELVED
    assert msgspec.structs.replace(alarm, suppressed=True).state is AlarmState.SUPPRESSED
    assert not alarm.is_normal


def test_notice_has_the_members_of_its_alarm() -> None:
    alarm = Alarm(id="a", rule="r", subject="s", active=ActiveState.LATCHED, acknowledgement=AckState.ACKNOWLEDGED)
    notice = AlarmNotice.of(alarm, AlarmChangeKind.RESET)
    assert (notice.active, notice.acknowledged, notice.confirmed) == (True, True, False)
    names = {"id", "active", "acknowledgement", "latch", "confirm"}
    assert set(msgspec.structs.asdict(alarm)) - names <= set(msgspec.structs.asdict(notice))
