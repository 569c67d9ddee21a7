"""Tests of failures after a step was left: the blocked run, possible interventions, and later progress."""

from typing import Any

import pytest
from hypothesis import given

from edge.model.recipe import Intervention
from edge.sfc.history import DecisionRecord, read_record, record_decision
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.intervention import held_failures
from edge.sfc.net import Net
from edge.sfc.replay import differing_fields, replay
from edge.sfc.run import ActionState, Outcome, Run
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    Granted,
    IgnoredKind,
    Intervene,
    Pause,
    Resolution,
    Resolve,
    Resume,
    SecondPerson,
    Signal,
    Start,
    Tick,
    Unknown,
)
from edge.sfc.view import next_deadline, stands
from edge.sfc.waiting import explain_waiting
from tests.sfc.charts import DAY, recipes
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, action, net_of, recipe, transition
from tests.sfc.test_advance_properties import MANY, Day, fresh, play

RETRY, SKIP, FORCE, COMPLETE = Intervention
NO_AIR = "failed: no air"


def line(*allowed: str, condition: str = "always", **members: Any) -> Net:
    """Return the steps A, B and C; `open` is sent when A is left, `b` and `c` in the steps of their name."""
    actions = [action("open", "A", "P0", **members), action("b", "B"), action("c", "C")]
    data = recipe("A B C", [transition("A", "B"), transition("B", "C", condition)], actions)
    return net_of({**data, "interventions": list(allowed)})


def standing(*allowed: str, condition: str = "always") -> Driven:
    driven = Driven(line(*allowed, condition=condition))
    driven.answer("open", 100, error="no air")
    return driven


def of(kind: Intervention, name: str = "open", **members: Any) -> Intervene:
    return Intervene(kind, "" if kind in (FORCE, COMPLETE) else name, reason="seen", by="anna", **members)


def loop(*allowed: str) -> Driven:
    """Return a run whose step A is active again while the `open` of its first round is unanswered."""
    data = recipe(
        "A B C",
        [transition("A", "B", "steps.A.count < 2"), transition("A", "C", "steps.A.count >= 3"), transition("B", "A")],
        [action("open", "A", "P0")],
    )
    return Driven(net_of({**data, "interventions": list(allowed)}))


@pytest.mark.parametrize(("allowed", "listed"), [(("retry",), (RETRY,)), (("skip", "retry"), (RETRY, SKIP))])
def test_failed_pulse_blocks_the_run_until_an_operator_decides(
    allowed: tuple[str, ...], listed: tuple[Intervention, ...]
) -> None:
    driven = standing(*allowed)
    (held_failure,) = held_failures(driven.net, driven.run)
    assert (held_failure.action, held_failure.step, str(held_failure.error), held_failure.allowed) == (
        "open",
        "A",
        NO_AIR,
        listed,
    )
    driven.answer("b", 200)
    assert driven.run.active == {"B"}
    assert driven.sent == []
    driven.signal(of(RETRY), 300)
    assert driven.sent == ["start J1/R1/open/2", "start J1/R1/c/1"]
    driven.answer("c", 400)
    assert not driven.run.ended
    driven.answer("open", 500, attempt=2)
    assert driven.run.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("allowed", [(), ("force", "complete")])
def test_failed_pulse_without_allowed_retry_or_skip_fails_the_job(allowed: tuple[str, ...]) -> None:
    driven = standing(*allowed)
    assert driven.run.outcome is Outcome.FAILED
    assert driven.sent == ["stop J1/R1/b/1"]


def test_retried_pulse_that_fails_again_blocks_the_run_again() -> None:
    driven = standing("retry")
    for attempt in (2, 3):
        driven.signal(of(RETRY), attempt * 1_000)
        driven.answer("open", attempt * 1_000 + 1, attempt=attempt, error="no air")
        assert driven.run.faults == (key("open@A"),)
    assert [past_attempt.attempt for past_attempt in driven.run.past.values()] == [1, 2]


def test_failure_is_explained_before_a_met_transition() -> None:
    driven = standing("retry")
    driven.answer("b", 200)
    reasons = [str(wait) for wait in explain_waiting(driven.net, driven.run, 300)]
    assert reasons[0].endswith("waits for open of A: failed after its step: a person decides first")
    assert reasons[1] == f"action open of A {NO_AIR}: waits for a person (retry)"


def test_blocked_run_clears_no_transition_by_time_or_force() -> None:
    driven = standing("skip", "force", "complete", condition="steps.B.T > 3s")
    driven.answer("b", 200)
    driven.signal(Tick(), 4_000)
    assert driven.run.active == {"B"}
    assert next_deadline(driven.net, driven.run) is None
    assert driven.ignored(of(FORCE, step="B", target="C"), 5_000) is IgnoredKind.NOT_POSSIBLE
    driven.signal(of(SKIP), 6_000)
    assert driven.run.active == {"C"}


def test_step_completed_in_a_blocked_run_is_left_after_the_decision() -> None:
    driven = standing("skip", "complete")
    driven.signal(of(COMPLETE, step="B"), 200)
    assert driven.sent == ["stop J1/R1/b/1"]
    assert driven.run.active == {"B"}
    driven.signal(of(SKIP), 300)
    assert driven.run.active == {"C"}


def test_failure_of_an_active_step_is_handled_after_the_decision() -> None:
    actions = [action("open", "A", "P0", interventions=["skip"]), action("b", "B")]
    driven = Driven(net_of(recipe("A B", [transition("A", "B")], actions)))
    driven.answer("open", 100, error="no air")
    driven.answer("b", 200, error="torque low")
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(of(SKIP), 300)
    assert str(driven.run.error) == "action 'b' of step 'B' failed: torque low"


def test_each_of_two_failed_pulses_needs_its_decision() -> None:
    actions = [action("open", "A", "P0"), action("lift", "A", "P0"), action("b", "B", "P")]
    driven = Driven(net_of({**recipe("A B", [transition("A", "B")], actions), "interventions": ["skip", "retry"]}))
    for at, name in enumerate(("open", "lift"), 100):
        driven.answer(name, at, error="no air")
    driven.answer("b", 200)
    driven.signal(of(SKIP), 300)
    assert [failure.action for failure in held_failures(driven.net, driven.run)] == ["lift"]
    driven.signal(of(SKIP, "lift"), 400)
    assert driven.run.outcome is Outcome.COMPLETED


def test_a_pulse_of_an_earlier_round_can_be_skipped_and_not_retried() -> None:
    driven = loop("retry", "skip")
    assert driven.run.active == {"A"}
    driven.answer("open", 100, error="no air")
    (held_failure,) = held_failures(driven.net, driven.run)
    assert (held_failure.attempt, held_failure.allowed) == (1, (SKIP,))
    assert driven.ignored(of(RETRY), 200) is IgnoredKind.NOT_POSSIBLE
    driven.signal(of(SKIP, data={"by_hand": True}), 300)
    assert (held_failures(driven.net, driven.run), driven.run.faults) == ((), ())
    assert [(past_attempt.attempt, past_attempt.state) for past_attempt in driven.run.past.values()] == [
        (1, ActionState.COMPLETED)
    ]


def test_a_pulse_of_an_earlier_round_fails_the_job_without_skip() -> None:
    driven = loop("retry")
    driven.answer("open", 100, error="no air")
    assert driven.run.outcome is Outcome.FAILED


def test_pulse_resolved_as_failed_blocks_the_run() -> None:
    driven = Driven(line("retry"))
    driven.signal(Unknown("J1/R1/open/1", "results lost"), 100)
    driven.signal(Resolve("open", Resolution.FAILED, reason="it is closed", by="anna"), 200)
    driven.signal(of(RETRY), 300)
    assert driven.sent == ["start J1/R1/open/2"]


def test_a_failed_pulse_in_a_pause_is_skipped_in_the_pause() -> None:
    driven = Driven(line("retry", "skip"))
    driven.signal(Pause(), 50)
    driven.answer("open", 100, error="no air")
    driven.answer("b", 110)
    assert [failure.action for failure in held_failures(driven.net, driven.run)] == ["open"]
    assert driven.ignored(of(RETRY), 120) is IgnoredKind.PAUSED
    driven.signal(of(SKIP), 130)
    assert driven.run.active == {"B"}
    driven.signal(Resume(), 200)
    assert driven.run.active == {"C"}


def test_two_people_skip_a_failed_pulse() -> None:
    driven = standing("skip")
    second = SecondPerson(600_000)
    driven.signal(of(SKIP, second=second), 200)
    driven.signal(of(SKIP, second=second), 300)
    assert held_failures(driven.net, driven.run)
    driven.signal(Intervene(SKIP, "open", reason="it is open", by="bert", second=second), 400)
    assert not held_failures(driven.net, driven.run)


def test_abort_ends_a_blocked_run() -> None:
    driven = standing("retry")
    driven.signal(Abort(), 200)
    assert (driven.run.outcome, held_failures(driven.net, driven.run)) == (Outcome.ABORTED, ())
    assert driven.ignored(of(RETRY), 300) is IgnoredKind.ENDED


def locking(timeout: float = 2) -> Json:
    data = recipe("A B C", [transition("A", "B"), transition("B", "C")], [action("open", "A", "P0"), action("c", "C")])
    data["steps"][2] |= {"lock": ["jig"], "lock_timeout_seconds": timeout}
    return {**data, "interventions": ["skip"]}


def test_lock_timeout_is_handled_after_the_decision() -> None:
    driven = Driven(net_of(locking()))
    driven.answer("open", 100, error="no air")
    assert next_deadline(driven.net, driven.run) is None
    driven.signal(Tick(), 9_000)
    granted = Driven(driven.net)
    granted.run = driven.run
    driven.signal(of(SKIP), 9_100)
    assert str(driven.run.error) == "step 'C': lock 'jig' was not free within its lock_timeout_seconds"
    granted.signal(Granted(("jig",)), 9_050)
    assert granted.run.active == {"B"}
    granted.signal(of(SKIP), 9_100)
    assert granted.run.active == {"C"}


def test_blocked_run_is_stored_and_replayed() -> None:
    net = line("retry", "skip")
    run = Run("J1", "station-1", "R1", {})
    records: list[DecisionRecord] = []
    driven = Driven(net, start=False)
    days: list[Signal] = [
        Start(),
        Answer("J1/R1/open/1", ok=False, error="no air"),
        Answer("J1/R1/b/1", ok=True),
        of(RETRY),
        Answer("J1/R1/open/2", ok=False, error="no air"),
        of(SKIP, data={"open": True}),
        Answer("J1/R1/c/1", ok=True),
    ]
    stored_decisions = []
    for number, signal in enumerate(days, 1):
        before = driven.run = decode(encode(driven.run))
        driven.signal(signal, number * 1_000)
        advanced = Advanced(driven.run, driven.requests, driven.steps)
        stored_decisions.append(record_decision(net, before, signal, advanced, number, number * 1_000))
    assert driven.run.outcome is Outcome.COMPLETED
    records = [read_record(net, driven.run, stored_decision) for stored_decision in stored_decisions]
    repeated = replay(net, driven.run, records)
    assert (repeated.differences, differing_fields(driven.run, repeated.run)) == ((), ())
    # A recipe without the permission would have failed at the first answer.
    other = replay(line(), run, records)
    assert other.run.outcome is Outcome.FAILED
    assert other.differences[0].record.number == 2


@MANY
@given(recipes(), DAY)
def test_blocked_run_changes_no_step(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    for before, _, _, advanced in play(net, fresh(), day):
        if stands(net, before) and stands(net, advanced.run) and not advanced.run.ended:
            assert advanced.steps == ()
            assert set(held_failures(net, before)) or before.paused
