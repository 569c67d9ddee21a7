"""The alarm state machine follows its table and agrees with an oracle that derives the state from history."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edge.features.telemetry.rules.alarm import (
    MAX_EARLIER,
    MAX_VALUE_LENGTH,
    Acknowledge,
    AddComment,
    AlarmChanged,
    AlarmEvent,
    AlarmRefusal,
    AlarmUnchanged,
    ChangeSeverity,
    Clear,
    Confirm,
    Disable,
    Enable,
    ExpireShelving,
    Raise,
    Reset,
    Shelve,
    Suppress,
    Unshelve,
    Unsuppress,
    faults_of_message,
    render_message,
    transition,
)
from edge.ports.alarm import AckState, ActiveState, Alarm, AlarmChangeKind, AlarmState, Shelving
from tests.examples import examples
from tests.features.telemetry.rules.alarm_oracle import NaiveAlarm

NORMAL = Alarm(id="a", rule="hot", subject="wrench.temp")
TEXT = {"en": "too hot"}
HIGH_AGAIN = Raise(800, TEXT, 96.0)
WARN, HIGH = Raise(500, TEXT, 81.5), ChangeSeverity(800, TEXT, 96.0)
LATCHING = Raise(500, TEXT, latch=True)
CONFIRMING = Raise(500, TEXT, confirm=True)


def after(*events: AlarmEvent, alarm: Alarm = NORMAL) -> Alarm:
    """Return the alarm after some events, one per millisecond; each must be possible."""
    for now, event in enumerate(events, 1):
        result = transition(alarm, event, now)
        assert isinstance(result, AlarmChanged), (event, result)
        alarm = result.alarm
    return alarm


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ((), AlarmState.NORMAL),
        ((WARN,), AlarmState.UNACKNOWLEDGED),
        ((WARN, Acknowledge("bo")), AlarmState.ACKNOWLEDGED),
        ((WARN, Clear()), AlarmState.RETURNED_UNACKNOWLEDGED),
        ((WARN, Acknowledge("bo"), Clear()), AlarmState.NORMAL),
        ((WARN, Clear(), Acknowledge("bo")), AlarmState.NORMAL),
        ((WARN, Clear(), WARN), AlarmState.UNACKNOWLEDGED),
        ((WARN, Acknowledge("bo"), HIGH), AlarmState.UNACKNOWLEDGED),
        ((WARN, HIGH, Acknowledge("bo"), ChangeSeverity(500, TEXT)), AlarmState.ACKNOWLEDGED),
        ((LATCHING, Clear()), AlarmState.LATCHED_UNACKNOWLEDGED),
        ((LATCHING, Clear(), Acknowledge("bo")), AlarmState.LATCHED_ACKNOWLEDGED),
        ((LATCHING, Clear(), Acknowledge("bo"), Reset("bo")), AlarmState.NORMAL),
        ((LATCHING, Clear(), Acknowledge("bo"), LATCHING), AlarmState.UNACKNOWLEDGED),
        ((CONFIRMING, Clear(), Acknowledge("bo"), Confirm("bo")), AlarmState.NORMAL),
        ((WARN, Shelve("bo", until=99)), AlarmState.SHELVED),
        ((WARN, Shelve("bo"), Clear()), AlarmState.RETURNED_UNACKNOWLEDGED),
        ((WARN, Shelve("bo", until=99), Unshelve("bo")), AlarmState.UNACKNOWLEDGED),
        ((WARN, Suppress()), AlarmState.SUPPRESSED),
        ((WARN, Suppress(), Unsuppress()), AlarmState.UNACKNOWLEDGED),
        ((WARN, Suppress(), Disable("bo")), AlarmState.OUT_OF_SERVICE),
        ((WARN, Disable("bo"), Enable("bo")), AlarmState.UNACKNOWLEDGED),
        ((WARN, Clear(), WARN, Clear(), Acknowledge("bo", raised_at=3)), AlarmState.RETURNED_UNACKNOWLEDGED),
        ((WARN, Clear(), WARN, Acknowledge("bo", raised_at=1)), AlarmState.UNACKNOWLEDGED),
    ],
)
def test_event_sequences_lead_to_the_states_of_isa_18_2(events: tuple[AlarmEvent, ...], state: AlarmState) -> None:
    assert after(*events).state is state


@pytest.mark.parametrize(
    ("events", "request_"),
    [
        ((), Acknowledge("bo")),
        ((WARN, Acknowledge("bo")), Acknowledge("eve")),
        ((WARN,), Confirm("bo")),
        ((WARN, Acknowledge("bo")), Confirm("bo")),
        ((WARN, Acknowledge("bo")), Reset("bo")),
        ((LATCHING, Clear()), Reset("bo")),
        ((WARN,), Unshelve("bo")),
        ((WARN,), Shelve("bo", until=2)),
        ((WARN, Clear()), Shelve("bo")),
        ((), Enable("bo")),
        ((WARN, Disable("bo")), Disable("eve")),
        ((WARN,), Acknowledge("bo", raised_at=7)),
        ((WARN, Clear(), WARN), Confirm("bo", raised_at=1)),
    ],
)
def test_request_not_allowed_in_the_state_is_refused(events: tuple[AlarmEvent, ...], request_: AlarmEvent) -> None:
    assert isinstance(transition(after(*events), request_, 2), AlarmRefusal)


@pytest.mark.parametrize(
    ("events", "event"),
    [
        ((), Clear()),
        ((), ChangeSeverity(500, TEXT)),
        ((WARN,), WARN),
        ((WARN, Clear()), Clear()),
        ((WARN,), ExpireShelving()),
        ((WARN, Shelve("bo", until=99)), ExpireShelving()),
        ((WARN, Shelve("bo")), ExpireShelving()),
        ((), Unsuppress()),
        ((Suppress(),), Suppress()),
    ],
)
def test_event_without_effect_leaves_the_alarm_unchanged(events: tuple[AlarmEvent, ...], event: AlarmEvent) -> None:
    assert transition(after(*events), event, 50) == AlarmUnchanged()


def test_raise_again_before_acknowledgement_increments_the_count() -> None:
    alarm = after(WARN, Clear(), WARN, Clear(), WARN)
    assert (alarm.count, alarm.raised_at, alarm.cleared_at) == (3, 5, None)
    assert after(Clear(), Acknowledge("bo"), WARN, alarm=alarm).count == 1


def test_each_unacknowledged_raise_waits_for_its_acknowledgement() -> None:
    alarm = after(WARN, Clear(), HIGH_AGAIN, Clear(), WARN)
    assert [
        (earlier_raise.raised_at, earlier_raise.cleared_at, earlier_raise.severity) for earlier_raise in alarm.earlier
    ] == [(1, 2, 500), (3, 4, 800)]
    one = after(Acknowledge("bo", raised_at=3), alarm=alarm)
    assert ([earlier_raise.raised_at for earlier_raise in one.earlier], one.acknowledgement) == (
        [1],
        AckState.UNACKNOWLEDGED,
    )
    assert not after(Acknowledge("bo"), alarm=alarm).earlier


def test_raise_to_be_confirmed_waits_for_its_confirmation() -> None:
    alarm = after(CONFIRMING, Clear(), CONFIRMING, Acknowledge("bo"))
    assert [earlier_raise.acknowledged for earlier_raise in alarm.earlier] == [True]
    assert not after(Confirm("bo", raised_at=1), alarm=alarm).earlier
    assert after(Clear(), Confirm("bo"), alarm=alarm).is_normal


def test_only_the_newest_unanswered_raises_are_kept() -> None:
    alarm = after(*(event for _ in range(MAX_EARLIER + 3) for event in (WARN, Clear())))
    assert (len(alarm.earlier), alarm.count) == (MAX_EARLIER, MAX_EARLIER + 3)


def test_an_alarm_keeps_the_person_the_comment_and_the_value() -> None:
    alarm = after(WARN, Acknowledge("bo", "on my way"), AddComment("eve", "fan replaced"))
    assert (alarm.by, alarm.comment, alarm.value, alarm.changed_at) == ("eve", "fan replaced", 81.5, 3)


def test_timed_shelving_ends_at_its_instant() -> None:
    shelved = after(WARN, Shelve("bo", "spare part ordered", until=99))
    assert shelved.shelving == Shelving(by="bo", at=2, comment="spare part ordered", until=99)
    ended = transition(shelved, ExpireShelving(), 99)
    assert isinstance(ended, AlarmChanged)
    assert (ended.kind, ended.alarm.shelving) == (AlarmChangeKind.UNSHELVED, None)


class AlarmMachine(RuleBasedStateMachine):
    """Applies random events to an alarm and to the naive one; both agree after each."""

    alarm: Alarm
    naive: NaiveAlarm
    now = 0

    @initialize(latch=st.booleans(), confirm=st.booleans())
    def begin(self, latch: bool, confirm: bool) -> None:  # noqa: FBT001 - Hypothesis passes them by name
        self.alarm = Alarm(id="a", rule="r", subject="s", latch=latch, confirm=confirm)
        self.naive = NaiveAlarm(latch, confirm)

    def apply(self, event: AlarmEvent, expected: bool) -> None:  # noqa: FBT001 - a parameter
        """Apply an event; it changes the alarm exactly when the naive one says so."""
        result = transition(self.alarm, event, self.now)
        assert isinstance(result, AlarmChanged) is expected
        if isinstance(result, AlarmChanged):
            self.alarm = result.alarm

    @rule(severity=st.sampled_from([200, 500, 800]))
    def report(self, severity: int) -> None:
        event = Raise(severity, TEXT, latch=self.naive.latch, confirm=self.naive.confirm)
        self.apply(event, self.naive.report(severity))

    @rule()
    def clear(self) -> None:
        self.apply(Clear(), self.naive.clear())

    @rule(answer=st.sampled_from([("acknowledge", Acknowledge("x")), ("confirm", Confirm("x")), ("reset", Reset("x"))]))
    def answer(self, answer: tuple[str, AlarmEvent]) -> None:
        self.apply(answer[1], self.naive.answer(answer[0]))

    @rule(seconds=st.sampled_from([None, -1, 1, 3]))
    def shelve(self, seconds: int | None) -> None:
        until = None if seconds is None else self.now + seconds
        allowed = self.naive.active != "inactive" if seconds is None else seconds > 0
        if allowed:
            self.naive.shelved, self.naive.one_shot, self.naive.until = True, seconds is None, until
        self.apply(Shelve("x", until=until), allowed)

    @rule()
    def unshelve(self) -> None:
        self.apply(Unshelve("x"), self.naive.shelved)
        self.naive.shelved = self.naive.one_shot = False

    @rule(step=st.integers(0, 2))
    def pass_time(self, step: int) -> None:
        self.now += step
        ends = self.naive.shelved and self.naive.until is not None and self.now >= self.naive.until
        self.apply(ExpireShelving(), ends)
        self.naive.shelved = self.naive.shelved and not ends

    @rule(suppressed=st.booleans())
    def suppress(self, suppressed: bool) -> None:  # noqa: FBT001 - a parameter
        self.apply(Suppress() if suppressed else Unsuppress(), suppressed is not self.naive.suppressed)
        self.naive.suppressed = suppressed

    @rule(disabled=st.booleans())
    def disable(self, disabled: bool) -> None:  # noqa: FBT001 - a parameter
        self.apply(Disable("x") if disabled else Enable("x"), disabled is not self.naive.disabled)
        self.naive.disabled = disabled

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "alarm"):
            return
        alarm, naive = self.alarm, self.naive
        assert (alarm.active, alarm.acknowledgement) == (naive.active, naive.acknowledgement)
        assert (alarm.severity, alarm.shelving is not None) == (naive.severity, naive.shelved)
        silent = naive.shelved or naive.suppressed or naive.disabled
        waits = naive.active != "inactive" or naive.acknowledgement != "confirmed"
        assert (not alarm.is_normal, alarm.is_retained) == (waits, waits or silent)


AlarmMachine.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
TestAlarmAgreesWithTheNaiveOne = AlarmMachine.TestCase


def test_every_combination_of_states_has_a_transition() -> None:
    for active in ActiveState:
        for acknowledgement in AckState:
            alarm = Alarm(id="a", rule="r", subject="s", active=active, acknowledgement=acknowledgement, severity=1)
            moves = (WARN, HIGH, Clear(), Acknowledge("x"), Confirm("x"), Reset("x"))
            assert any(isinstance(transition(alarm, move, 1), AlarmChanged) for move in moves)


def test_placeholders_are_replaced_in_every_language() -> None:
    message = {"en": "{subject} has {value} °C", "de": "{subject}: {value} °C, Auftrag {job}"}
    facts = {"subject": "wrench.temp", "value": 81.50000001, "job": None}
    assert render_message(message, facts) == {
        "en": "wrench.temp has 81.5 °C",
        "de": "wrench.temp: 81.5 °C, Auftrag –",
    }


def test_a_plain_text_is_english() -> None:
    assert render_message("hot", {}) == {"en": "hot"}


def test_members_of_the_data_of_an_occurrence_are_shown() -> None:
    facts = {"data": {"step": "A", "seconds": 12.0}}
    assert render_message("{data.step}: {data.seconds} s {data.none}", facts) == {"en": "A: 12 s –"}
    assert render_message("{data.step}", {"data": "text"}) == {"en": "–"}


def test_huge_value_is_truncated() -> None:
    assert len(render_message("{value}", {"value": "x" * 10_000})["en"]) == MAX_VALUE_LENGTH + 1


def test_placeholders_in_a_value_are_not_replaced() -> None:
    assert render_message("{value}", {"value": "{subject}", "subject": "s"}) == {"en": "{subject}"}


@pytest.mark.parametrize(
    "message", ["{value.__class__}", "{nonsense}", "{data.}", "{data.a.b}", {}, {"en": ""}, {"de": "{}"}]
)
def test_faults_of_a_message_are_found(message: str | dict[str, str]) -> None:
    assert list(faults_of_message(message))


def test_valid_message_has_no_faults() -> None:
    assert list(faults_of_message({"en": "{rule} {subject} {severity} {value} {job} {at} {data.step}"})) == []
