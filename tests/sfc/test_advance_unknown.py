"""Tests of outcome unknown: begun marks, unknown outcomes, their resolution, late results and past attempts."""

import pytest

from edge.sfc.advance import advance
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome
from edge.sfc.run_fields import decode, encode
from edge.sfc.signal import (
    Abort,
    Advanced,
    Answer,
    Begun,
    Ignored,
    IgnoredKind,
    Late,
    Resolution,
    Resolve,
    Tick,
    Unknown,
)
from edge.sfc.waiting import explain_waiting
from edge.store import version
from edge.store.version import Document
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, net_of, recipe, transition

WORK = net_of(
    recipe(
        "A B", [transition("A", "B")], [action("bolt", "A", timeout_seconds=5), action("next", "B", timeout_seconds=5)]
    )
)
PATH = net_of(
    recipe(
        "A B C",
        [transition("A", "B"), transition("A", "C", "actions.bolt.unknown")],
        [action("bolt", "A", timeout_seconds=5), action("look", "C")],
    )
)
BOLT = "J1/R1/bolt/1"


def unknown(net: object = WORK) -> Driven:
    driven = Driven(net)  # type: ignore[arg-type]
    driven.signal(Unknown(BOLT, "the controller lost its results"), 100)
    return driven


def test_unknown_outcome_keeps_the_job_waiting_without_a_deadline() -> None:
    driven = unknown()
    assert driven.run.outcome is Outcome.RUNNING
    driven.signal(Tick(), 600_000)
    assert driven.run.associations[key("bolt@A")].state is ActionState.UNKNOWN
    assert driven.run.active == {"A"}
    assert driven.sent == []


def test_unknown_outcome_is_explained() -> None:
    driven = unknown()
    reported = "; ".join(str(wait) for wait in explain_waiting(WORK, driven.run, 200))
    assert "bolt of A is unknown, outcome unknown: the controller lost its results" in reported


def test_recipe_path_for_an_unknown_outcome_is_taken() -> None:
    driven = unknown(PATH)
    assert driven.run.active == {"C"}
    # The tool may still be at work: it is stopped, and the outcome stays unknown.
    assert driven.sent == ["stop J1/R1/bolt/1", "start J1/R1/look/1"]
    assert driven.run.associations[key("bolt@A")].state is ActionState.UNKNOWN


def test_result_found_later_resolves_the_unknown_outcome() -> None:
    driven = unknown()
    driven.answer("bolt", 200, {"torque": 85})
    assert driven.run.associations[key("bolt@A")].error is None
    assert driven.sent == ["start J1/R1/next/1"]


def test_unknown_outcome_reported_twice_changes_nothing() -> None:
    assert unknown().ignored(Unknown(BOLT, "again"), 200) is IgnoredKind.DUPLICATE


@pytest.mark.parametrize(
    ("resolution", "sent", "outcome"),
    [
        (Resolution.DONE, ["start J1/R1/next/1"], Outcome.RUNNING),
        (Resolution.REPEAT, ["start J1/R1/bolt/2"], Outcome.RUNNING),
        (Resolution.FAILED, [], Outcome.FAILED),
    ],
)
def test_operator_resolves_the_unknown_outcome(resolution: Resolution, sent: list[str], outcome: Outcome) -> None:
    driven = unknown()
    driven.signal(Resolve("bolt", resolution, {"torque": 80}, "seen on the tool", "ops"), 300)
    assert (driven.sent, driven.run.outcome) == (sent, outcome)
    kept = [past_attempt.resolved_by for past_attempt in driven.run.past.values()]
    kept += [association.resolved_by for association in driven.run.associations.values()]
    assert "ops: seen on the tool" in kept


def test_only_an_unknown_outcome_can_be_resolved() -> None:
    driven = Driven(WORK)
    assert driven.ignored(Resolve("bolt", Resolution.DONE), 300) is IgnoredKind.NOT_UNKNOWN


def test_repeated_action_keeps_the_unknown_attempt() -> None:
    driven = unknown()
    driven.signal(Resolve("bolt", Resolution.REPEAT, by="ops"), 300)
    (past,) = driven.run.past.values()
    assert (past.attempt, past.state, past.armed_at, past.ended_at) == (1, ActionState.UNKNOWN, 0, 300)


def test_abort_stops_an_action_of_unknown_outcome() -> None:
    driven = unknown()
    driven.signal(Abort(), 300)
    assert driven.sent == ["stop J1/R1/bolt/1"]
    assert driven.run.associations[key("bolt@A")].state is ActionState.UNKNOWN
    assert driven.run.open == set()


def test_begun_mark_is_set_once() -> None:
    driven = Driven(WORK)
    driven.signal(Begun(BOLT, "process-1"), 10)
    assert driven.run.associations[key("bolt@A")].begun == "process-1"
    assert driven.ignored(Begun(BOLT, "process-2"), 20) is IgnoredKind.DUPLICATE
    driven.signal(Abort(), 30)
    assert driven.ignored(Begun(BOLT, "process-2"), 40) is IgnoredKind.ENDED


def test_late_result_is_stored_without_effect_on_the_run() -> None:
    driven = Driven(WORK)
    driven.signal(Abort(), 1)
    assert driven.ignored(Answer(BOLT, ok=True), 2) is IgnoredKind.LATE
    driven.signal(Late(BOLT, {"torque": 85}), 2)
    (past,) = driven.run.past.values()
    assert (past.late, past.result, driven.run.outcome) == (True, {"torque": 85}, Outcome.ABORTED)


@pytest.mark.parametrize("first", [Late(BOLT, {"stopped": True}), Late(BOLT, error="stop released by ops: air off")])
def test_result_is_late_also_after_another_late_report(first: Late) -> None:
    driven = Driven(WORK)
    driven.signal(Abort(), 1)
    driven.signal(first, 2)
    assert driven.ignored(Answer(BOLT, ok=True, data={"torque": 85}), 3) is IgnoredKind.LATE


def test_result_after_the_decision_of_an_operator_is_late() -> None:
    driven = unknown()
    driven.signal(Resolve("bolt", Resolution.DONE, {"torque": 80}, "seen on the tool", "ops"), 300)
    assert driven.ignored(Answer(BOLT, ok=True, data={"torque": 85}), 400) is IgnoredKind.LATE
    assert driven.ignored(Answer(BOLT, ok=True, data={"torque": 80}), 400) is IgnoredKind.DUPLICATE
    assert driven.ignored(Answer(BOLT, ok=False), 400) is IgnoredKind.DUPLICATE


def test_second_result_of_a_command_that_differs_is_late() -> None:
    """The device has done the work twice, or a person has done it before."""
    driven = Driven(WORK)
    driven.answer("bolt", 100, {"torque": 85})
    assert driven.ignored(Answer(BOLT, ok=True, data={"torque": 102}), 200) is IgnoredKind.LATE


def test_late_result_of_another_job_is_refused() -> None:
    assert Driven(WORK).ignored(Late("J2/R1/bolt/1", {}), 2) is IgnoredKind.FOREIGN


def test_reset_sent_at_abort_accepts_its_answer_after_the_end() -> None:
    net = net_of(
        recipe(
            "A B C",
            [transition("A", "B", "x"), transition("B", "C")],
            [action("clamp", "A", "S", type_id="close"), action("clamp", "B", "R", type_id="open")],
        )
    )
    driven = Driven(net)
    driven.signal(Abort(), 10)
    (reset,) = [text for text in driven.sent if text.startswith("reset")]
    answered = advance(net, driven.run, Answer(reset.removeprefix("reset "), ok=True, data={"open": True}), 20)
    assert isinstance(answered, Advanced)
    assert answered.run.associations[key("clamp@B")].state is ActionState.COMPLETED
    assert answered.run.outcome is Outcome.ABORTED
    again = advance(net, answered.run, Answer(reset.removeprefix("reset "), ok=True), 30)
    assert isinstance(again, Ignored)
    assert again.kind is IgnoredKind.DUPLICATE


def test_every_loop_pass_is_kept_with_its_times() -> None:
    net = net_of(recipe("A B", [transition("A", "B"), transition("B", "A", "steps.B.T >= 1s")], [action("bolt", "A")]))
    driven = Driven(net)
    for number in (1, 2, 3):
        now = number * 10_000
        driven.answer("bolt", now, {"torque": number}, attempt=number)
        driven.signal(Tick(), now + 1000)
    assert [
        (past_attempt.attempt, past_attempt.armed_at, past_attempt.ended_at)
        for past_attempt in driven.run.past.values()
    ] == [
        (1, 0, 10_000),
        (2, 11_000, 20_000),
        (3, 21_000, 30_000),
    ]


def test_unknown_outcome_and_past_attempts_survive_the_store() -> None:
    driven = unknown()
    driven.signal(Resolve("bolt", Resolution.REPEAT, by="ops"), 300)
    driven.signal(Unknown("J1/R1/bolt/2", "again"), 400)
    run = decode(encode(driven.run))
    assert run.associations == driven.run.associations
    assert run.past == driven.run.past
    assert run.open == driven.run.open


def test_run_stored_by_release_0_9_is_read() -> None:
    stored = {
        "run": '{"job_id":"J1","scope":"station-1","run_id":"R1"}',
        "state": '{"started_at":5}',
        "step:A": '{"active":true,"activated_at":5,"count":1}',
        "action:bolt@A": '{"state":"dispatched","attempt":1,"armed_at":5,"deadline":5005}',
    }
    run = decode(version.upgrade_fields(Document.RUN, stored))
    assert run.open == {key("bolt@A")}
    assert (run.associations[key("bolt@A")].command_id, run.associations[key("bolt@A")].begun, run.past) == (
        BOLT,
        "",
        {},
    )
