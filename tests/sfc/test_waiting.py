"""Waiting reasons: the unmet parts of conditions and the open commands."""

from typing import Any

from hypothesis import given

from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.run import ActionState
from edge.sfc.signal import Abort, Advanced, Intervene, Pause
from edge.sfc.waiting import ActionWaits, TransitionWaits, explain_waiting, possible_interventions
from tests.sfc.charts import DAY, recipes
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, net_of, recipe, transition
from tests.sfc.test_advance_properties import MANY, Day, fresh, play


def test_an_unanswered_command_is_reported_with_its_age_and_deadline() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"))))
    transition_waits, action_waits = explain_waiting(driven.net, driven.run, 4000)
    assert isinstance(transition_waits, TransitionWaits)
    assert action_waits == ActionWaits("a", "A", ActionState.DISPATCHED, 1, 4000, 6000, None)
    assert str(transition_waits) == "A → B [always] waits for steps.A.done: a is dispatched"
    assert str(action_waits) == "action a of A is dispatched, for 4 s, times out in 6 s"


def test_each_unmet_term_is_reported_with_its_present_value() -> None:
    data = recipe("A B C", [transition("A", "B", "torque >= 80 and torque_ok"), transition("A", "C", "steps.A.T > 9s")])
    driven = Driven(net_of(data), {"torque": 61})
    reported = [str(wait) for wait in explain_waiting(driven.net, driven.run, 1500)]
    assert reported == [
        "A → B [torque >= 80 and torque_ok] waits for torque >= 80: torque is 61; torque_ok: torque_ok: no value yet",
        "A → C [steps.A.T > 9s] waits for steps.A.T > 9s: steps.A.T is 1.5",
    ]


def test_a_convergence_is_reported_only_when_all_its_sources_are_active() -> None:
    data = recipe(
        "I A A2 B End",
        [transition("I", "par"), transition("par", "End")],
        [action("a", "A"), action("d", "B", "D", duration_seconds=5)],
        branch("par", "simultaneous", "A A2", "B"),
    )
    driven = Driven(net_of(data))
    reported = [str(wait) for wait in explain_waiting(driven.net, driven.run, 1000)]
    assert reported == [
        "A → A2 [always] waits for steps.A.done: a is dispatched",
        "action a of A is dispatched, for 1 s, times out in 9 s",
        "action d of B is pending, duration ends in 4 s",
    ]


def test_paused_run_is_reported_with_its_duration() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"))))
    driven.signal(Pause(), 1000)
    held, _, action_waits = explain_waiting(driven.net, driven.run, 61_000)
    assert str(held) == "paused for 60 s"
    assert isinstance(action_waits, ActionWaits)
    assert action_waits.left_ms == 9000


def test_run_not_started_or_ended_is_reported_with_the_reason() -> None:
    driven = Driven(net_of(chain("A B", action("a", "A"))), start=False)
    assert list(map(str, explain_waiting(driven.net, driven.run, 0))) == ["the run has not started"]
    driven.signal(Abort("e-stop"), 1)
    assert list(map(str, explain_waiting(driven.net, driven.run, 2))) == ["the run is aborted: e-stop"]


def test_condition_not_yet_evaluable_is_reported_as_unmet() -> None:
    driven = Driven(net_of(recipe("A B", [transition("A", "B", "torque > 80")], [action("a", "A")])), {"torque": "85"})
    reported = explain_waiting(driven.net, driven.run, 0)[0]
    assert isinstance(reported, TransitionWaits)
    assert str(reported.unmet[1].because) == "'torque > 80' compares a string with a number ('85', 80)"


RETRY, SKIP, FORCE, COMPLETE = Intervention


def test_a_failed_action_can_be_retried_or_skipped_and_its_step_left() -> None:
    data = recipe("A B", [transition("A", "B", "go")], [action("bolt", "A")])
    driven = Driven(net_of({**data, "interventions": ["retry", "skip", "force", "complete"]}))
    assert possible_interventions(driven.net, driven.run, 10) == (
        Intervene(SKIP, "bolt", "A"),
        Intervene(COMPLETE, step="A"),
        Intervene(FORCE, step="A", target="B"),
    )
    driven.answer("bolt", 20, error="torque low")
    assert Intervene(RETRY, "bolt", "A") in possible_interventions(driven.net, driven.run, 30)
    driven.signal(Intervene(FORCE, step="A", target="B"), 40)
    assert possible_interventions(driven.net, driven.run, 50) == ()


def test_no_intervention_is_possible_without_permission() -> None:
    driven = Driven(net_of(recipe("A B", [transition("A", "B", "go")], [action("bolt", "A")])))
    assert possible_interventions(driven.net, driven.run, 10) == ()


@MANY
@given(recipes(), DAY)
def test_accepted_intervention_was_listed_before(recipe: dict[str, Any], day: Day) -> None:
    net = net_of(recipe)
    for before, signal, now, _ in play(net, fresh(), day):
        if isinstance(signal, Intervene) and signal.second is None:
            kinds = [
                (intervention.kind, intervention.action or intervention.step)
                for intervention in possible_interventions(net, before, now)
            ]
            assert (signal.kind, signal.action or signal.step) in kinds
            assert isinstance(advance(net, before, signal, now), Advanced)
