"""Every signal in every state is processed, or ignored with its kind; no signal raises."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.sfc.advance import MAX_EARLY_EVENTS, advance
from edge.sfc.run import Outcome, new_run
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    Event,
    Ignored,
    IgnoredKind,
    Pause,
    Resume,
    Signal,
    Start,
    StepChange,
    Stop,
    Tick,
    Unknown,
)
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, net_of, recipe, transition, wait

WORK = net_of(chain("A B End", action("a", "A"), action("b", "B"), wait("w", "B", type_id="part")))


def event(number: int = 1, *, named: bool = False, type_id: str = "part") -> Event:
    return Event(type_id, {"n": number}, f"e{number}", named=named)


@pytest.mark.parametrize("signal", [Answer("J1/R1/a/1", ok=True), Tick(), Pause(), Resume()])
def test_signal_before_the_start_is_ignored(signal: Signal) -> None:
    assert Driven(WORK, start=False).ignored(signal, 0) is IgnoredKind.NOT_STARTED


def test_a_run_starts_once() -> None:
    assert Driven(WORK).ignored(Start(), 1) is IgnoredKind.STARTED


@pytest.mark.parametrize(("ending", "outcome"), [(Abort("e-stop"), Outcome.ABORTED), (Stop(), Outcome.STOPPED)])
def test_a_run_can_end_before_it_starts(ending: Signal, outcome: Outcome) -> None:
    driven = Driven(WORK, start=False)
    driven.signal(ending, 5)
    assert (driven.run.outcome, driven.run.ended_at, driven.sent) == (outcome, 5, [])
    assert str(driven.run.error) == ("e-stop" if isinstance(ending, Abort) else "stopped")


@pytest.mark.parametrize(
    "signal", [Start(), Unknown("J1/R1/a/1", "x"), event(), Tick(), Pause(), Resume(), Abort(), Stop()]
)
def test_signal_after_the_end_of_a_run_is_ignored(signal: Signal) -> None:
    driven = Driven(WORK)
    driven.signal(Abort(), 1)
    assert driven.ignored(signal, 2) is IgnoredKind.ENDED


def test_answer_after_the_end_of_the_run_is_late() -> None:
    driven = Driven(WORK)
    driven.signal(Abort(), 1)
    assert driven.ignored(Answer("J1/R1/a/1", ok=True), 2) is IgnoredKind.LATE


def test_answer_clears_the_step_and_starts_the_next_command() -> None:
    driven = Driven(WORK)
    assert driven.sent == ["start J1/R1/a/1"]
    driven.answer("a", 100, {"torque": 85})
    assert driven.sent == ["start J1/R1/b/1"]
    assert driven.steps == (StepChange("A", active=False, at=100), StepChange("B", active=True, at=100))
    assert driven.run.variables == {"torque": 85}


@pytest.mark.parametrize(
    "command",
    ["", "J1/R1/a", "J2/R1/a/1", "J1/R2/a/1", "J1/R1/zzz/1", "J1/R1/a/2", "J1/R1/a/0", "J1/R1/a/1/reset", "J1/R1/b/1"],
)
def test_an_answer_to_a_command_that_was_not_sent_is_foreign(command: str) -> None:
    assert Driven(WORK).ignored(Answer(command, ok=True), 1) is IgnoredKind.FOREIGN


def test_repeated_answer_is_a_duplicate() -> None:
    driven = Driven(WORK)
    driven.answer("a", 1)
    assert driven.ignored(Answer("J1/R1/a/1", ok=False), 2) is IgnoredKind.DUPLICATE


def test_an_answer_after_the_stop_is_late() -> None:
    driven = Driven(
        net_of(recipe("A B", [transition("A", "B", "steps.A.T >= 1s")], [action("a", "A"), action("b", "B")]))
    )
    driven.signal(Tick(), 1000)
    assert driven.sent == ["stop J1/R1/a/1", "start J1/R1/b/1"]
    assert driven.ignored(Answer("J1/R1/a/1", ok=True), 1001) is IgnoredKind.LATE


def test_event_without_a_waiting_action_is_discarded() -> None:
    assert Driven(WORK).ignored(event(), 1) is IgnoredKind.NOT_WAITING


def test_an_event_of_an_unknown_type_that_names_the_job_is_foreign() -> None:
    assert Driven(WORK).ignored(event(named=True, type_id="other"), 1) is IgnoredKind.FOREIGN


def test_an_early_event_that_names_the_job_is_kept_once() -> None:
    driven = Driven(WORK, start=False)
    driven.signal(event(named=True), 0)
    assert driven.ignored(event(named=True), 0) is IgnoredKind.DUPLICATE
    driven.signal(Start(), 1)
    driven.answer("a", 2)
    assert driven.run.variables == {"n": 1}
    assert driven.run.early == {}
    assert driven.ignored(event(), 3) is IgnoredKind.DUPLICATE


def test_events_without_id_are_not_duplicates() -> None:
    driven = Driven(net_of(chain("A B End", wait("x", "A", type_id="part"), wait("y", "B", type_id="part"))))
    driven.signal(Event("part", None, "", named=False), 1)
    driven.signal(Event("part", None, "", named=False), 2)
    assert driven.run.outcome is Outcome.COMPLETED


def test_early_events_are_kept_up_to_a_bound() -> None:
    driven = Driven(WORK)
    for number in range(MAX_EARLY_EVENTS):
        driven.signal(event(number, named=True), 1)
    assert driven.ignored(event(MAX_EARLY_EVENTS, named=True), 1) is IgnoredKind.TOO_MANY


def test_paused_run_ignores_ticks_and_a_second_pause() -> None:
    driven = Driven(WORK)
    assert driven.ignored(Resume(), 1) is IgnoredKind.NOT_PAUSED
    driven.signal(Pause(), 1)
    assert driven.run.paused
    assert driven.ignored(Pause(), 2) is IgnoredKind.PAUSED
    assert driven.ignored(Tick(), 99_999_999) is IgnoredKind.PAUSED


def test_a_late_tick_expires_timers_in_their_order() -> None:
    data = recipe(
        "I A B End",
        [transition("I", "par"), transition("par", "End")],
        [action("a", "A", timeout_seconds=9), action("b", "B", "L", duration_seconds=5, timeout_seconds=0)],
        {"name": "par", "type": "simultaneous", "branches": [["A"], ["B"]]},
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 60_000)
    assert driven.sent == ["stop J1/R1/b/1", "stop J1/R1/a/1"]
    assert str(driven.run.error) == "action 'a' of step 'A' timed out after 9 s"


def test_late_tick_is_evaluated_at_the_time_of_each_expired_timer() -> None:
    data = recipe(
        "A Soon Late",
        [transition("A", "Soon", "actions.a.timed_out", 1), transition("A", "Late", "steps.A.T >= 30s")],
        [action("a", "A", timeout_seconds=9)],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 60_000)
    assert driven.run.active == {"Soon"}


def test_elapsed_time_of_a_clock_set_back_is_zero() -> None:
    driven = Driven(WORK)
    driven.signal(Pause(), 1000)
    driven.signal(Resume(), 500)
    driven.answer("a", 0)
    assert driven.run.steps["A"].elapsed_ms == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda search_strategy: (
        st.lists(search_strategy, max_size=3) | st.dictionaries(st.text(max_size=5), search_strategy, max_size=3)
    ),
    max_leaves=5,
)
SIGNALS = st.one_of(
    st.builds(Answer, st.text(max_size=20) | st.sampled_from(["J1/R1/a/1", "J1/R1/b/1"]), st.booleans(), JSON),
    st.builds(Event, st.sampled_from(["part", "", "x"]), JSON, st.text(max_size=3), named=st.booleans()),
    st.sampled_from([Start(), Tick(), Pause(), Resume()]),
    st.builds(Abort, st.text(max_size=5)),
    st.builds(Stop, st.text(max_size=5)),
)


@given(st.lists(st.tuples(SIGNALS, st.integers(-(10**15), 10**15)), max_size=12))
def test_any_signal_in_any_state_returns_a_result_or_a_refusal(signals: list[tuple[Any, int]]) -> None:
    run = new_run("J1", "s", "R1", {"p": 1})
    for signal, now in signals:
        decided = advance(WORK, run, signal, now)
        if isinstance(decided, Advanced):
            run = decided.run
        else:
            assert isinstance(decided, Ignored)


def test_answer_whose_id_escapes_more_characters_is_accepted() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"), action("b", "B"))))
    driven.signal(Answer("%4A1/R%31/%61/1", ok=True), 1)
    assert driven.sent == ["start J1/R1/b/1"]
    assert driven.ignored(Answer("%4A1/R%31/%61/1", ok=True), 2) is IgnoredKind.DUPLICATE
