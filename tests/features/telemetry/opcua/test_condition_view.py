"""Conditions are derived from alarms and their changes; the server stores no events to find the raise of an EventId."""

import pytest
from asyncua import ua
from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.model.rule import (
    AlarmLimits,
    BaselineRule,
    ExpressionRule,
    LimitLevel,
    LimitRule,
    OccursRule,
    RateRule,
    Rule,
    StaleRule,
)
from edge.features.telemetry.opcua.condition_view import (
    ConditionKind,
    ConditionPlace,
    ConditionView,
    FollowedAlarm,
    changed_views,
    encode_event_id,
    follow_change,
    kind_of,
    raise_of,
    tag_of_alarm,
)
from edge.features.telemetry.rules.alarm import Acknowledge, AlarmChanged, AlarmEvent, Clear, Disable, Raise, transition
from edge.ports.alarm import Alarm, AlarmChangeKind, EarlierRaise, alarm_id
from edge.store.kept_alarms import AlarmChange

HOT = Raise(500, {"en": "hot"}, 81.5)
PLACE = ConditionPlace(ua.NodeId("station-1", 8), "station-1", "Alarms/station-1")


def views(*events: AlarmEvent) -> list[tuple[ConditionView, AlarmChangeKind]]:
    """Return the view after each event, one per millisecond."""
    alarm = Alarm(id=alarm_id("hot", "temp"), rule="hot", subject="temp")
    state: FollowedAlarm | None = None
    found = []
    for now, event in enumerate(events, 1):
        result = transition(alarm, event, now)
        assert isinstance(result, AlarmChanged)
        alarm = result.alarm
        state = follow_change(state, AlarmChange(alarm, result.kind, position=f"{now}-0"))
        found.append((ConditionView(state, ConditionKind(), PLACE, ua.NodeId(alarm.id, 10)), result.kind))
    return found


def sent(*events: AlarmEvent) -> list[tuple[int | None, bool]]:
    """Return what is sent after the last event: the raise of a branch, and Retain."""
    found = views(*events)
    before = found[-2][0] if len(found) > 1 else None
    after, kind = found[-1]
    return [
        (view.branch.raised_at if view.branch else None, view.is_retained)
        for view in changed_views(before, after, kind)
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((HOT,), [(None, True)]),
        ((HOT, Acknowledge("bo"), Clear()), [(None, False)]),
        ((HOT, Clear(), HOT), [(1, True), (None, True)]),
        ((HOT, Clear(), HOT, Acknowledge("bo", raised_at=1)), [(1, False)]),
        ((HOT, Clear(), HOT, Acknowledge("bo")), [(1, False), (None, True)]),
        ((HOT, Clear(), HOT, Disable("bo")), [(1, False), (None, False)]),
        ((HOT, Disable("bo"), Clear()), []),
    ],
)
def test_change_sends_its_branches_and_its_condition(
    events: tuple[AlarmEvent, ...], expected: list[tuple[int | None, bool]]
) -> None:
    assert sent(*events) == expected


def test_last_severity_and_transition_times_are_kept() -> None:
    view, _ = views(HOT, Raise(800, {"en": "hotter"}), Acknowledge("bo", "seen"))[-1]
    assert (view.state.last_severity, view.state.times) == (
        500,
        {"acked": 3, "confirmed": 1, "severity": 2, "comment": 3},
    )


def test_event_id_identifies_one_raise_of_an_alarm() -> None:
    (first, _), _, (again, _) = views(HOT, Clear(), HOT)
    assert raise_of(again.state, first.event_id) == 1
    assert raise_of(again.state, again.event_id) == 3
    assert raise_of(again.state, encode_event_id(again.alarm.id, 7, "3-0")) is None
    assert raise_of(again.state, encode_event_id(alarm_id("other", "temp"), 3, "3-0")) is None


@given(st.one_of(st.none(), st.binary(max_size=64), st.integers()))
def test_arbitrary_event_id_is_looked_up_without_error(event_id: object) -> None:
    alarm = Alarm(id=alarm_id("hot", "temp"), rule="hot", subject="temp", earlier=(EarlierRaise(raised_at=1),))
    assert raise_of(FollowedAlarm(alarm), event_id) in {None, 0, 1}


@pytest.mark.parametrize(
    ("rule", "type_id"),
    [
        (LimitRule(id="r", tag="t", limits=AlarmLimits(high=LimitLevel(1))), ua.ObjectIds.ExclusiveLimitAlarmType),
        (RateRule(id="r", tag="t", per_second=1), ua.ObjectIds.ExclusiveRateOfChangeAlarmType),
        (BaselineRule(id="r", tag="t"), ua.ObjectIds.DiscrepancyAlarmType),
        (StaleRule(id="r", tag="t", seconds=1), ua.ObjectIds.OffNormalAlarmType),
        (OccursRule(id="r", pattern="x"), ua.ObjectIds.OffNormalAlarmType),
        (ExpressionRule(id="r", when="true"), ua.ObjectIds.OffNormalAlarmType),
        (None, ua.ObjectIds.AlarmConditionType),
    ],
)
def test_kind_of_rule_decides_the_type(rule: Rule | None, type_id: int) -> None:
    alarm = Alarm(id="a", rule="r", subject="t")
    assert kind_of(rule, alarm).type_id == type_id
    own = kind_of(OccursRule(id="r", pattern="x"), Alarm(id="a", rule="r", subject="gateway.x"))
    assert own.type_id == ua.ObjectIds.SystemOffNormalAlarmType


@pytest.mark.parametrize(
    ("rule", "subject", "tag"),
    [
        (RateRule(id="fast", severity=1, tag="speed.x", per_second=10), "speed.x", "speed.x"),
        (RateRule(id="fast", severity=1, tag="speed.*", per_second=10), "speed.y", "speed.y"),
        (RateRule(id="fast", severity=1, tag="w.torque", per_second=10, subject="job"), "w.torque[J1]", "w.torque"),
        (RateRule(id="fast", severity=1, tag="*.torque", per_second=10, subject="job"), "w.torque[J1]", "w.torque"),
        (RateRule(id="fast", severity=1, tag="w.*", per_second=10, subject="tool"), "w", None),
        (ExpressionRule(id="door", severity=1, when="a > 1"), "door", None),
        (None, "speed.x", None),
    ],
    ids=["tag", "pattern", "job", "job of a pattern", "tool", "expression", "rule that is gone"],
)
def test_source_of_an_alarm_is_the_tag_of_its_rule(rule: Rule | None, subject: str, tag: str | None) -> None:
    assert tag_of_alarm(rule, Alarm(id="x", rule="fast", subject=subject)) == tag


def test_rate_rule_sets_the_limit_of_its_alarm() -> None:
    """An ExclusiveRateOfChangeAlarm without any limit is none (OPC 10000-9, 5.8.19)."""
    kind = kind_of(RateRule(id="fast", severity=1, tag="x", per_second=10), Alarm(id="x", rule="fast", subject="x"))
    assert kind.limits == AlarmLimits(high=LimitLevel(10))
