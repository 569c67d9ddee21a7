"""Tests of interventions: effect by qualifier, refusals with reasons, second person, replay."""

from typing import Any

import pytest

from edge.model.recipe import Intervention
from edge.sfc.history import DecisionRecord, changes_of, read_record, record_decision
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.intervention import held_failures
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Outcome
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import (
    Advanced,
    Answer,
    IgnoredKind,
    Intervene,
    Pause,
    Resolution,
    Resolve,
    Resume,
    SecondPerson,
    Tick,
    Unknown,
)
from edge.sfc.waiting import explain_waiting
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, action, branch, faults_of, net_of, recipe, transition, wait

RETRY, SKIP, FORCE, COMPLETE = Intervention
WITHIN = SecondPerson(600_000)


def line(*actions: Json, allowed: tuple[str, ...] = ("retry", "skip", "force", "complete")) -> Net:
    """Return two steps, A with these actions, and B with the action `next`."""
    data = recipe("A B", [transition("A", "B")], [*actions, action("next", "B")])
    return net_of({**data, "interventions": list(allowed)})


def of(kind: Intervention, action: str = "bolt", by: str = "anna", **members: Any) -> Intervene:
    return Intervene(kind, "" if kind in (FORCE, COMPLETE) else action, reason="seen", by=by, **members)


def failed(net: Net) -> Driven:
    driven = Driven(net)
    driven.answer("bolt", 100, error="torque low")
    return driven


def test_failure_waits_for_an_operator_if_retry_or_skip_is_allowed() -> None:
    driven = failed(line(action("bolt", "A")))
    assert driven.run.outcome is Outcome.RUNNING
    (held_failure,) = held_failures(driven.net, driven.run)
    assert (held_failure.action, held_failure.step, str(held_failure.error), held_failure.allowed) == (
        "bolt",
        "A",
        "failed: torque low",
        (RETRY, SKIP),
    )
    assert any(
        "waits for a person (retry, skip)" in str(waiting_for)
        for waiting_for in explain_waiting(driven.net, driven.run, 200)
    )
    driven.signal(Tick(), 90_000)
    assert driven.run.active == {"A"}


@pytest.mark.parametrize("allowed", [(), ("force",), ("complete",)])
def test_failure_ends_the_job_without_allowed_retry_or_skip(allowed: tuple[str, ...]) -> None:
    assert failed(line(action("bolt", "A"), allowed=allowed)).run.outcome is Outcome.FAILED


def test_intervention_list_of_an_action_overrides_the_recipe() -> None:
    driven = failed(line(action("bolt", "A", interventions=[])))
    assert driven.run.outcome is Outcome.FAILED
    driven = failed(line(action("bolt", "A", interventions=["retry"]), allowed=()))
    assert driven.run.outcome is Outcome.RUNNING
    assert driven.ignored(of(SKIP), 200) is IgnoredKind.NOT_ALLOWED


@pytest.mark.parametrize("qualifier", ["N", "P", "P1", "S", "L", "D", "DS", "SL"])
def test_retry_sends_exactly_one_new_attempt(qualifier: str) -> None:
    timed = {"duration_seconds": 5} if qualifier in {"L", "D", "DS", "SL"} else {}
    net = line(action("bolt", "A", qualifier, **timed))
    driven = Driven(net)
    if qualifier in {"D", "DS"}:
        driven.signal(Tick(), 5_000)
    driven.answer("bolt", 5_100, error="torque low") if qualifier in {"D", "DS"} else driven.answer(
        "bolt", 100, error="torque low"
    )
    driven.signal(of(RETRY), 6_000)
    assert driven.sent == ["start J1/R1/bolt/2"]
    assert driven.ignored(of(RETRY), 6_001) is IgnoredKind.NOT_POSSIBLE
    assert driven.run.associations[key("bolt@A")].deadline == 16_000
    driven.answer("bolt", 6_500, {"torque": 85}, attempt=2)
    assert driven.run.active == {"B"}
    assert [
        (past_attempt.attempt, past_attempt.state, past_attempt.resolved_by)
        for past_attempt in driven.run.past.values()
    ] == [(1, ActionState.FAILED, "anna: seen")]


def test_retry_of_an_unknown_outcome_is_a_new_attempt_without_a_stop() -> None:
    driven = Driven(line(action("bolt", "A")))
    driven.signal(Unknown("J1/R1/bolt/1", "results lost"), 100)
    driven.signal(of(RETRY), 200)
    assert driven.sent == ["start J1/R1/bolt/2"]
    driven.answer("bolt", 300, attempt=2)
    assert driven.run.active == {"B"}


def test_failed_reset_and_timed_out_wait_can_be_retried() -> None:
    net = line(action("clamp", "A", "S"), action("clamp", "B", "R"), wait("scan", "B"))
    driven = Driven(net)
    driven.answer("clamp", 10)
    driven.signal(Answer("J1/R1/clamp/1/reset", ok=False), 20)
    driven.signal(of(RETRY, "clamp"), 30)
    assert driven.sent == ["reset J1/R1/clamp/2/reset"]
    driven.signal(Tick(), 20_000)
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(of(RETRY, "scan"), 30_000)
    assert driven.run.associations[key("scan@B")].state is ActionState.WAITING


def test_failed_start_shared_by_two_steps_is_retried() -> None:
    paths = branch("both", "simultaneous", "B", "C")
    data = recipe(
        "A B C D",
        [transition("A", "both"), transition("both", "D")],
        [action("clamp", "B", "S"), action("clamp", "C", "S")],
        paths,
    )
    driven = Driven(net_of({**data, "interventions": ["retry", "skip"]}))
    driven.answer("clamp", 10, error="no air")
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(of(RETRY, "clamp"), 20)
    assert driven.sent == ["start J1/R1/clamp/2"]
    driven.answer("clamp", 30, attempt=2, error="no air")
    driven.signal(of(SKIP, "clamp"), 40)
    assert driven.run.active == {"D"}


@pytest.mark.parametrize(
    ("qualifier", "sent"),
    [("N", ["stop J1/R1/bolt/1"]), ("P", ["stop J1/R1/bolt/1"]), ("S", ["stop J1/R1/bolt/1"])],
)
def test_skip_stops_an_open_command_and_keeps_the_given_result(qualifier: str, sent: list[str]) -> None:
    driven = Driven(line(action("bolt", "A", qualifier)))
    driven.signal(of(SKIP, data={"torque": 85}), 100)
    assert driven.sent == [*sent, "start J1/R1/next/1"]
    assert driven.run.variables == {"torque": 85}
    assert driven.run.associations[key("bolt@A")].resolved_by == "skipped by anna: seen"
    # What the tool did after all is kept as a late result.
    assert driven.ignored(Answer("J1/R1/bolt/1", ok=True, data={"torque": 12}), 200) is IgnoredKind.LATE


@pytest.mark.parametrize("qualifier", ["L", "D", "DS", "SL"])
def test_skip_of_a_timed_action_drops_its_duration(qualifier: str) -> None:
    driven = Driven(line(action("bolt", "A", qualifier, duration_seconds=5)))
    driven.signal(of(SKIP), 100)
    assert driven.run.active == {"B"}
    assert driven.sent[-1] == "start J1/R1/next/1"
    driven.signal(Tick(), 9_000)
    assert driven.sent == []


def test_failures_waits_and_left_actions_can_be_skipped() -> None:
    driven = failed(line(action("bolt", "A")))
    driven.signal(of(SKIP), 200)
    assert driven.sent == ["start J1/R1/next/1"]
    driven = Driven(line(wait("scan", "A")))
    driven.signal(of(SKIP, "scan", data={"id": "4711"}), 100)
    assert driven.run.active == {"B"}
    # A pulse whose step is left, and an SD that has yet to be sent.
    driven = Driven(line(action("lamp", "A", "P0"), action("pump", "A", "SD", duration_seconds=60)))
    driven.answer("next", 5)
    driven.signal(of(SKIP, "pump"), 10)
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(of(SKIP, "lamp"), 20)
    assert driven.run.ended


def test_skip_of_an_ended_or_unstarted_action_is_refused() -> None:
    driven = Driven(line(action("bolt", "A")))
    driven.answer("bolt", 10)
    assert driven.ignored(of(SKIP), 20) is IgnoredKind.NOT_POSSIBLE
    assert driven.ignored(of(SKIP, "nothing"), 20) is IgnoredKind.NOT_POSSIBLE
    assert driven.ignored(of(RETRY, "next"), 20) is IgnoredKind.NOT_POSSIBLE
    driven.answer("next", 30)
    assert driven.ignored(of(SKIP, "next"), 40) is IgnoredKind.ENDED


def test_the_step_distinguishes_two_actions_of_one_name() -> None:
    paths = branch("both", "simultaneous", "B", "C")
    data = recipe(
        "A B C D",
        [transition("A", "both"), transition("both", "D")],
        [action("bolt", "B"), action("bolt", "C")],
        paths,
    )
    driven = Driven(net_of({**data, "interventions": ["skip"]}))
    driven.signal(of(SKIP, step="B"), 10)
    assert driven.run.associations[key("bolt@B")].state is ActionState.COMPLETED
    assert driven.run.associations[key("bolt@C")].state is ActionState.DISPATCHED


@pytest.mark.parametrize(
    ("qualifier", "sent"),
    [("N", ["stop J1/R1/bolt/1"]), ("P", []), ("S", []), ("P0", ["start J1/R1/bolt/1"]), ("L", ["stop J1/R1/bolt/1"])],
)
def test_complete_ends_open_actions_as_leaving_the_step_does(qualifier: str, sent: list[str]) -> None:
    timed = {"duration_seconds": 5} if qualifier == "L" else {}
    driven = Driven(line(action("bolt", "A", qualifier, **timed), wait("scan", "A")))
    driven.signal(of(COMPLETE, step="A"), 100)
    assert driven.sent == [*sent, "start J1/R1/next/1"]
    assert driven.run.active == {"B"}


def test_completed_step_waits_for_its_condition_and_ignores_failures() -> None:
    data = recipe("A B", [transition("A", "B", "go")], [action("bolt", "A", "P"), action("next", "B")])
    driven = Driven(net_of({**data, "interventions": ["complete", "force"]}))
    driven.signal(of(COMPLETE, step="A"), 100)
    assert driven.run.active == {"A"}
    assert driven.ignored(of(COMPLETE, step="A"), 110) is IgnoredKind.NOT_POSSIBLE
    driven.answer("bolt", 200, error="torque low")
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(of(FORCE, step="A", target="B"), 300)
    assert driven.run.active == {"B"}


def test_complete_of_the_last_step_ends_the_job() -> None:
    driven = Driven(line())
    driven.signal(of(COMPLETE, step="B"), 100)
    assert driven.run.outcome is Outcome.COMPLETED


def test_force_leaves_a_step_in_spite_of_condition_and_priority() -> None:
    choices = [transition("A", "B", "never"), transition("A", "C", "go")]
    driven = Driven(net_of({**recipe("A B C", choices, [action("bolt", "A")]), "interventions": ["force"]}))
    driven.signal(of(FORCE, step="A", target="B"), 100)
    assert driven.sent == ["stop J1/R1/bolt/1"]
    assert driven.ignored(of(FORCE, step="A", target="C"), 110) is IgnoredKind.ENDED


def test_force_enters_and_leaves_all_paths_of_a_simultaneous_branch() -> None:
    data = recipe(
        "A B C D",
        [transition("A", "both", "never"), transition("both", "D", "never")],
        [action("left", "B"), action("right", "C")],
        branch("both", "simultaneous", "B", "C"),
    )
    driven = Driven(net_of({**data, "interventions": ["force"]}))
    driven.signal(of(FORCE, step="A", target="B"), 10)
    assert driven.run.active == {"B", "C"}
    driven.signal(of(FORCE, step="B", target="D"), 20)
    assert sorted(driven.sent) == ["stop J1/R1/left/1", "stop J1/R1/right/1"]
    assert driven.run.active == {"D"}


def test_force_is_refused_without_transition_or_before_a_branch_end() -> None:
    data = recipe(
        "A B B2 C D",
        [transition("A", "both"), transition("B", "B2", "go"), transition("both", "D")],
        [],
        branch("both", "simultaneous", "B B2", "C"),
    )
    driven = Driven(net_of({**data, "interventions": ["force"]}))
    assert driven.ignored(of(FORCE, step="A", target="B"), 10) is IgnoredKind.NOT_POSSIBLE
    assert driven.ignored(of(FORCE, step="C", target="D"), 10) is IgnoredKind.NOT_POSSIBLE
    assert driven.ignored(of(FORCE, step="C", target="A"), 10) is IgnoredKind.NOT_POSSIBLE


def test_paused_run_starts_no_action_and_keeps_results() -> None:
    driven = failed(line(action("bolt", "A")))
    driven.signal(Pause(), 200)
    for refused in (of(RETRY), of(FORCE, step="A", target="B")):
        assert driven.ignored(refused, 210) is IgnoredKind.PAUSED
    driven.signal(of(SKIP), 220)
    assert driven.sent == []
    assert driven.run.active == {"A"}
    driven.signal(Resume(), 300)
    assert driven.run.active == {"B"}


def test_a_repeat_in_a_pause_is_refused() -> None:
    driven = Driven(line(action("bolt", "A")))
    driven.signal(Unknown("J1/R1/bolt/1", "results lost"), 100)
    driven.signal(Pause(), 200)
    assert driven.ignored(Resolve("bolt", Resolution.REPEAT, by="anna"), 210) is IgnoredKind.PAUSED


def test_a_second_person_confirms_the_same_intervention() -> None:
    driven = failed(line(action("bolt", "A")))
    driven.signal(of(SKIP, data={"torque": 1}, second=WITHIN), 200)
    driven.signal(of(SKIP, by="Anna (root)", data={"torque": 85}, second=WITHIN), 300)
    assert driven.run.active == {"A"}
    without_login = of(SKIP, by="bert", data={"torque": 85}, second=SecondPerson(600_000, has_login=False))
    assert driven.ignored(without_login, 400) is IgnoredKind.NEEDS_SECOND
    assert driven.ignored(of(SKIP, by="bert", second=WITHIN), 400) is IgnoredKind.NEEDS_SECOND
    driven.signal(of(SKIP, by="bert (root)", data={"torque": 85}, second=WITHIN), 500)
    assert driven.run.active == {"B"}
    (note,) = driven.run.interventions.values()
    assert (note.by, note.at, note.until) == ("Anna (root)", 300, None)
    assert (note.second, note.second_at, note.second_reason) == ("bert (root)", 500, "seen")
    assert driven.run.associations[key("bolt@A")].resolved_by == "skipped by Anna (root) and bert (root): seen"


def test_late_or_mismatched_confirmation_counts_as_a_first_request() -> None:
    driven = failed(line(action("bolt", "A")))
    driven.signal(of(RETRY, second=WITHIN), 200)
    driven.signal(of(RETRY, by="bert", second=WITHIN), 700_000)
    assert driven.sent == []
    driven.signal(of(RETRY), 700_001)
    driven.answer("bolt", 700_100, attempt=2, error="torque low")
    driven.signal(of(RETRY, by="carl", second=WITHIN), 700_200)
    assert driven.sent == []
    assert [intervention.until is None for intervention in driven.run.interventions.values()] == [
        False,
        False,
        True,
        False,
    ]


def test_interventions_are_stored_and_replayed() -> None:
    net = line(action("bolt", "A"))
    driven = failed(net)
    for at, signal in enumerate(
        (
            of(SKIP, data={"torque": 85}, second=WITHIN),
            of(SKIP, by="bert", data={"torque": 85}, second=WITHIN),
            of(COMPLETE, step="B"),
        ),
        300,
    ):
        before = driven.run
        driven.signal(signal, at)
        advanced = Advanced(driven.run, driven.requests, driven.steps)
        stored_decision = record_decision(net, before, signal, advanced, at, at)
        assert read_record(net, driven.run, stored_decision) == DecisionRecord(
            at, at, signal, changes_of(net, before, advanced)
        )
        restored = decode(encode(driven.run))
        assert (restored.interventions, restored.steps) == (driven.run.interventions, driven.run.steps)
    assert driven.run.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"interventions": ["reset"]}, "'interventions' must be a list of retry, skip, force, complete"),
        ({"interventions": "skip"}, "'interventions' must be a list"),
        ({"actions": [action("bolt", "A", interventions=["force"])]}, "must be a list of retry, skip"),
        ({"steps": [{"name": "A", "initial": True, "interventions": ["skip", "skip"]}]}, "a list of force, complete"),
        ({"Interventions": [["skip"]]}, "must be a list"),
    ],
)
def test_a_faulty_list_of_interventions_is_reported(change: Json, fault: str) -> None:
    assert any(fault in text for text in faults_of({**recipe("A", [], []), **change}))
