"""The life cycle of an association, beyond the cases in `cases/`."""

from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import ActionState, Outcome, waits
from edge.sfc.signal import Answer, Event, IgnoredKind, Phase, Tick
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition, wait


def test_parameters_of_the_job_order_replace_those_of_the_action() -> None:
    driven = Driven(net_of(chain("A", action("a", "A", parameters={"torque": 90}))), {"torque": 85, "angle": 30})
    assert driven.requests[0].parameters == {"torque": 85, "angle": 30}


def test_end_of_a_delay_keeps_the_activation() -> None:
    driven = Driven(net_of(chain("A", action("a", "A", "D", duration_seconds=5))))
    assert driven.run.associations[key("a@A")].state is ActionState.PENDING
    driven.signal(Tick(), 5000)
    association = driven.run.associations[key("a@A")]
    assert (association.state, association.attempt, association.armed_at, association.deadline, association.due) == (
        "dispatched",
        1,
        5000,
        15_000,
        None,
    )


def test_a_pulse_left_behind_in_a_loop_keeps_its_own_answer() -> None:
    data = recipe(
        "A B",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "A")],
        [action("p", "A", "P", timeout_seconds=0)],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    assert driven.sent == ["start J1/R1/p/2"]
    assert set(driven.run.associations) == {key("p@A"), key("p@A/1")}
    driven.answer("p", 1100, {"late": True}, attempt=1)
    assert set(driven.run.associations) == {key("p@A")}
    assert driven.run.associations[key("p@A")].state is ActionState.DISPATCHED
    assert driven.ignored(Answer("J1/R1/p/1", ok=True), 1200) is IgnoredKind.DUPLICATE


def test_pulse_left_behind_has_no_timeout() -> None:
    data = recipe(
        "A B C", [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C", "x")], [action("p", "A", "P")]
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.signal(Tick(), 60_000)
    assert driven.run.outcome is Outcome.RUNNING
    driven.answer("p", 61_000, error="broken")
    assert driven.run.outcome is Outcome.RUNNING
    assert driven.run.associations[key("p@A")].state is ActionState.FAILED


def test_a_stored_action_that_fails_after_its_step_was_left_fails_the_run() -> None:
    data = recipe(
        "A B C", [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C", "x")], [action("s", "A", "S")]
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.answer("s", 1500, error="no air")
    assert str(driven.run.error) == "action 's' of step 'A' failed: no air"


def test_failed_shared_start_is_handled_at_the_waiting_step() -> None:
    data = recipe(
        "A B C D",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C"), transition("B", "D", "actions.s.failed", -1)],
        [action("s", "A", "S"), action("s", "B", "S")],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.answer("s", 1500, error="no air")
    assert driven.run.active == {"D"}
    assert driven.run.outcome is Outcome.COMPLETED


def test_s_starts_at_once_while_sd_of_the_same_action_is_delayed() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B"), transition("B", "C", "steps.B.T >= 9s")],
        [action("s", "A", "SD", duration_seconds=5), action("s", "B", "S")],
    )
    driven = Driven(net_of(data))
    assert driven.sent == ["start J1/R1/s/1"]
    driven.answer("s", 100)
    driven.signal(Tick(), 5000)
    assert driven.sent == []
    assert driven.run.associations[key("s@A")].state is ActionState.COMPLETED


def test_a_shared_start_keeps_the_limit_of_the_sl_that_set_it() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C", "x")],
        [action("s", "B", "S"), action("s", "A", "SL", duration_seconds=5)],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.answer("s", 2000)
    states = {key: (association.state.value, association.due) for key, association in driven.run.associations.items()}
    assert states == {key("s@A"): ("completed", 5000), key("s@B"): ("completed", None)}
    driven.signal(Tick(), 5000)
    assert driven.sent == ["stop J1/R1/s/1"]


def test_failed_pulse_of_an_earlier_pass_is_discarded() -> None:
    data = recipe(
        "A B",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "A")],
        [action("p", "A", "P", timeout_seconds=0)],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.answer("p", 1100, attempt=1, error="broken")
    assert set(driven.run.associations) == {key("p@A")}
    assert driven.run.outcome is Outcome.RUNNING


def test_a_stored_wait_outlives_its_step_and_r_ends_it() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B", "steps.A.T >= 1s"), transition("B", "C", "steps.B.T >= 1s")],
        [wait("s", "A", "S", type_id="part"), action("s", "C", "R")],
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    assert waits(driven.run) == {"part": 0}
    driven.signal(Tick(), 2000)
    assert waits(driven.run) == {}
    assert driven.sent == ["reset J1/R1/s/1/reset"]


def test_event_goes_to_the_longest_wait_then_by_recipe_order() -> None:
    data = recipe(
        "I A B End",
        [transition("I", "par"), transition("par", "End")],
        [wait("late", "A", "D", type_id="part", duration_seconds=1), wait("soon", "B", type_id="part")],
        branch("par", "simultaneous", "A", "B"),
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 1000)
    driven.signal(Event("part", None, "e1", named=False), 2000)
    assert driven.run.associations[key("soon@B")].state is ActionState.COMPLETED
    assert driven.run.associations[key("late@A")].state is ActionState.WAITING


def test_two_associations_of_one_name_in_one_step_are_distinguished() -> None:
    net = net_of(chain("A B", action("x", "A", "P1"), action("x", "A", "P0")))
    assert set(net.actions) == {key("x@A"), key("x@A#2")}
    driven = Driven(net)
    driven.answer("x", 1)
    assert driven.sent == ["start J1/R1/x/2"]
    driven.answer("x", 2, attempt=2)
    assert driven.run.outcome is Outcome.COMPLETED


def test_overdue_start_shared_by_two_steps_is_stopped_once() -> None:
    data = recipe(
        "A X Y E",
        [transition("A", "both"), transition("both", "E")],
        [action("s", "X", "S"), action("s", "Y", "S"), action("s", "E", "R")],
        branch("both", "simultaneous", "X", "Y"),
    )
    driven = Driven(net_of(data))
    driven.signal(Tick(), 10_000)
    assert [request.phase for request in driven.requests].count(Phase.STOP) == 1
