"""Alarms in tables and reports; control characters are left out."""

from msgspec.structs import replace

from edge.features.telemetry.cli.alarms.view import changes_table, report, table
from edge.ports.alarm import Alarm, AlarmChangeKind, public_alarm_change
from edge.store.kept_alarms import AlarmChange

ALARM = Alarm(id="3f9a" * 4, rule="hot", subject="a\x1b[2J", severity=500, message={"de": "heiß"}, raised_at=0)


def test_report_has_every_language_and_no_control_characters() -> None:
    lines = list(report(ALARM))
    assert any(line.startswith("message (de)") and line.endswith("heiß") for line in lines)
    assert "\x1b" not in "".join(lines)


def test_alarm_tables_have_a_row_for_each_alarm() -> None:
    assert table([ALARM, ALARM]).row_count == 2
    assert changes_table([AlarmChange(ALARM, AlarmChangeKind.RAISED)]).row_count == 1


def test_person_is_named_only_for_changes_made_by_a_person() -> None:
    alarm = replace(ALARM, by="bo")
    kinds = (AlarmChangeKind.ACKNOWLEDGED, AlarmChangeKind.CLEARED, AlarmChangeKind.RAISED)
    assert [public_alarm_change(alarm, kind).by for kind in kinds] == ["bo", "", ""]
