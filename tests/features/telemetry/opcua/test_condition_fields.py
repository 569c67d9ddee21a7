"""The fields of conditions have the types and texts of OPC 10000-9."""

from typing import Any

import pytest
from asyncua import ua
from asyncua.ua.ua_binary import variant_to_binary

from edge.features.telemetry.model.rule import AlarmLimits, LimitLevel
from edge.features.telemetry.opcua.condition_fields import level_of, shape_of
from edge.features.telemetry.opcua.condition_view import ConditionKind, ConditionPlace, ConditionView, FollowedAlarm
from edge.opcua.access import reading_in
from edge.ports.alarm import ActiveState, Alarm, Shelving
from edge.uaserver.condition_members import ConditionFields

PLACE = ConditionPlace(ua.NodeId("station-1", 8), "station-1", "Alarms/station-1")
LIMITS = AlarmLimits(high_high=LimitLevel(95, 800), high=LimitLevel(80, 500), low=LimitLevel(10, 500))
TYPES = (
    ua.ObjectIds.AlarmConditionType,
    ua.ObjectIds.ExclusiveLimitAlarmType,
    ua.ObjectIds.DiscrepancyAlarmType,
    ua.ObjectIds.OffNormalAlarmType,
)


def view(type_id: int = TYPES[1], **changes: Any) -> ConditionView:
    known: dict[str, Any] = {"active": ActiveState.ACTIVE, "severity": 500, "raised_at": 1, "value": 81}
    alarm = Alarm(id="0011223344556677", rule="hot", subject="temp", **(known | changes))
    return ConditionView(FollowedAlarm(alarm), ConditionKind(type_id, limits=LIMITS), PLACE, ua.NodeId(alarm.id, 10))


def fields_of(found: ConditionView) -> ConditionFields:
    """Return the fields of the event about a condition."""
    return ConditionFields(shape_of(found.kind).members, found)


@pytest.mark.parametrize("type_id", TYPES)
def test_every_field_of_every_type_can_be_encoded(type_id: int) -> None:
    for name, value in fields_of(view(type_id)).items():
        assert variant_to_binary(value), name
    assert len(fields_of(view(type_id))) > 40


def test_limit_that_a_rule_does_not_have_is_absent() -> None:
    """A client showed it as null."""
    fields = dict(fields_of(view()).items())
    assert fields["LowLimit"].Value == 10
    assert "LowLowLimit" not in fields


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "High"),
        ({"severity": 800}, "HighHigh"),
        ({"value": 9}, "Low"),
        ({"value": "text"}, "High"),
        ({"severity": 77}, "High"),
        ({"active": ActiveState.LATCHED}, None),
        ({"active": ActiveState.INACTIVE}, None),
    ],
)
def test_limit_level_follows_severity_and_value(changes: dict[str, Any], level: str | None) -> None:
    assert level_of(view(**changes)) == level


@pytest.mark.parametrize(
    ("shelving", "state"),
    [
        (None, "Unshelved"),
        (Shelving(by="bo", at=1, one_shot=True), "One Shot Shelved"),
        (Shelving(by="bo", at=1, until=5), "Timed Shelved"),
    ],
)
def test_shelving_state_is_one_of_three_states(shelving: Shelving | None, state: str) -> None:
    fields = fields_of(view(shelving=shelving))
    assert fields["ShelvingState/CurrentState"].Value.Text == state
    assert fields["SuppressedOrShelved"].Value is (shelving is not None)


def test_message_and_states_are_in_the_language_of_the_session() -> None:
    fields = fields_of(view(message={"en": "too hot", "de": "zu heiß"}))
    assert fields["Message"].Value == ua.LocalizedText("too hot", "en")
    with reading_in(("de-AT", "en")):
        assert fields["Message"].Value == ua.LocalizedText("zu heiß", "de")
        states = [fields[path].Value.Text for path in ("ActiveState", "AckedState", "LimitState/CurrentState")]
    assert states == ["Aktiv", "Quittiert", "Hoch"]


def test_alarm_without_a_message_is_named_by_its_rule() -> None:
    assert fields_of(view())["Message"].Value == ua.LocalizedText("hot")
