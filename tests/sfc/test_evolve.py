"""Clearing, failing and ending of a run, beyond the cases in `cases/`."""

import pytest
from msgspec.structs import replace

from edge.sfc.condition import RunAccess
from edge.sfc.evolve import MAX_SWEEPS
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome
from edge.sfc.signal import Abort, StepChange, Tick
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition


def test_convergence_leaves_all_paths_and_enters_its_target_once() -> None:
    data = recipe(
        "I A B End",
        [transition("I", "par"), transition("par", "End")],
        [action("a", "A"), action("b", "B")],
        branch("par", "simultaneous", "A", "B"),
    )
    driven = Driven(net_of(data))
    driven.answer("a", 1)
    assert not driven.steps
    driven.answer("b", 2)
    assert driven.steps == (
        StepChange("A", active=False, at=2),
        StepChange("B", active=False, at=2),
        StepChange("End", active=True, at=2),
    )


@pytest.mark.untraced
def test_long_chain_of_empty_steps_completes_without_livelock() -> None:
    driven = Driven(net_of(chain(" ".join(f"S{n}" for n in range(3000)))))
    assert driven.run.outcome is Outcome.COMPLETED
    assert MAX_SWEEPS > 3000


@pytest.mark.untraced
def test_livelock_fails_the_run_and_sends_no_command() -> None:
    loop = [transition("A", "B", "steps.A.X and go"), transition("B", "A", "steps.B.X")]
    driven = Driven(net_of(recipe("A B", loop, [action("p", "A", "P0"), action("q", "A", "SD", duration_seconds=9)])))
    assert driven.run.outcome is Outcome.RUNNING
    driven.run = replace(driven.run, variables={"go": True})
    driven.signal(Tick(), 5)
    assert driven.run.outcome is Outcome.FAILED
    assert not driven.sent
    assert not driven.steps
    assert driven.run.active == {"A"}
    started = Driven(net_of(recipe("A B", loop)), {"go": True})
    assert str(started.run.error) == "livelock: transitions clear for ever at one instant, last A"
    assert (started.run.started_at, started.run.ended_at) == (0, 0)


def test_condition_that_cannot_be_evaluated_fails_the_run() -> None:
    driven = Driven(net_of(recipe("A B", [transition("A", "B", "torque > 80")], [action("a", "A")])))
    driven.answer("a", 5, {"torque": "85"})
    assert driven.run.outcome is Outcome.FAILED
    assert str(driven.run.error) == (
        "transitions[0] (A → B): condition 'torque > 80': 'torque > 80' compares a string with a number ('85', 80)"
    )


def test_an_identifier_that_raises_fails_the_run_not_the_process() -> None:
    def broken(_: RunAccess) -> object:
        raise RuntimeError("camera")

    driven = Driven(net_of(recipe("A B", [transition("A", "B", "seen")]), {"seen": broken}))
    assert driven.run.outcome is Outcome.FAILED
    assert "the identifier 'seen' failed: RuntimeError('camera')" in str(driven.run.error)


def test_failed_run_stops_commands_of_its_own_decision() -> None:
    data = recipe(
        "I A B End",
        [transition("I", "par"), transition("par", "End"), transition("A", "A2"), transition("A2", "A3", "x > 1")],
        [action("b", "B"), action("b2", "B")],
        branch("par", "simultaneous", "A A2 A3", "B"),
    )
    data["steps"] += [{"name": "A2"}, {"name": "A3"}]
    driven = Driven(net_of(data), {"x": "text"})
    assert driven.run.outcome is Outcome.FAILED
    assert driven.sent == ["start J1/R1/b/1", "start J1/R1/b2/1", "stop J1/R1/b/1", "stop J1/R1/b2/1"]


def test_last_step_stays_active_after_the_end_of_the_run() -> None:
    driven = Driven(net_of(chain("A B", action("b", "B"))))
    driven.signal(Abort(), 5)
    assert driven.run.active == {"B"}
    assert driven.run.associations[key("b@B")].state is ActionState.STOPPED


def test_a_shared_start_is_stopped_once() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C")],
        [action("s", "A", "S"), action("s", "B", "S")],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.signal(Abort(), 2000)
    assert driven.sent == ["stop J1/R1/s/1"]


def test_sl_without_r_is_stopped_at_abort() -> None:
    data = recipe("A B", [transition("A", "B", "x")], [action("s", "A", "SL", duration_seconds=9)])
    driven = Driven(net_of(data))
    driven.answer("s", 1)
    driven.signal(Abort(), 2)
    assert driven.sent == ["stop J1/R1/s/1"]


def test_expired_sl_is_not_reset_at_abort() -> None:
    data = recipe(
        "A B",
        [transition("A", "B", "x")],
        [action("s", "A", "SL", duration_seconds=2), action("s", "B", "R")],
    )
    driven = Driven(net_of(data))
    driven.answer("s", 1)
    driven.signal(Tick(), 2000)
    assert driven.sent == ["stop J1/R1/s/1"]
    driven.signal(Abort(), 3000)
    assert driven.sent == []


def test_pending_reset_is_not_stopped_at_abort() -> None:
    driven = Driven(net_of(chain("A B", action("s", "A", "S"), action("s", "B", "R"))))
    driven.answer("s", 1)
    assert driven.sent == ["reset J1/R1/s/1/reset"]
    driven.signal(Abort(), 2)
    assert driven.sent == []


def test_abort_stops_commands_sent_after_a_pending_reset() -> None:
    actions = [action("s", "A", "S"), action("s", "B", "R"), action("b", "B")]
    driven = Driven(net_of(chain("A B", *actions)))
    driven.answer("s", 1)
    driven.signal(Abort(), 2)
    assert driven.sent == ["stop J1/R1/b/1"]


def test_normal_end_leaves_no_action_pending() -> None:
    driven = Driven(net_of(chain("A B", action("s", "A", "SD", duration_seconds=9))))
    assert driven.run.outcome is Outcome.COMPLETED
    assert [association.state for association in driven.run.associations.values()] == [ActionState.STOPPED]
    assert not driven.run.open
