"""The verdict of a run: of its recipe, or of the last attempts of its actions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.model.recipe import Intervention
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Outcome
from edge.sfc.signal import Abort, Intervene, Stop
from edge.sfc.verdict import LONGEST_VERDICT, NO_VERDICT, NOT_OK, OK, skipped_by, verdict_of
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, chain, faults_of, net_of, recipe, transition

_DECIDED = (Outcome.COMPLETED, Outcome.FAILED)


def _verdict(driven: Driven) -> str:
    return verdict_of(driven.net, driven.run, 1000)


def _line(**keys: Any) -> Net:
    return net_of({**chain("A B C", action("bolt", "A"), action("scan", "B")), **keys})


def _completed(net: Net, *results: Any) -> Driven:
    driven = Driven(net)
    for at, (name, result) in enumerate(zip(("bolt", "scan"), results, strict=True)):
        driven.answer(name, 100 * (at + 1), result)
    assert driven.run.outcome is Outcome.COMPLETED
    return driven


def test_run_whose_actions_completed_is_ok() -> None:
    assert _verdict(_completed(_line(), {"torque": 85}, None)) == OK


def test_running_job_has_no_verdict() -> None:
    assert _verdict(Driven(_line())) == NO_VERDICT


def test_run_without_actions_has_no_verdict() -> None:
    assert _verdict(Driven(net_of(chain("A B")))) == NO_VERDICT


@pytest.mark.parametrize("signal", [Stop("wrong part"), Abort("wrong part")])
def test_run_that_a_person_ended_has_no_verdict(signal: Stop | Abort) -> None:
    driven = Driven(_line(verdict="true"))
    driven.signal(signal, 50)
    assert _verdict(driven) == NO_VERDICT


def test_skipped_action_is_not_ok_and_names_the_person() -> None:
    driven = Driven(_line(interventions=["skip"]))
    driven.signal(Intervene(Intervention.SKIP, action="bolt", reason="no bolt left", by="anna"), 50)
    (association,) = (item for item in driven.run.associations.values() if item.action == "bolt")
    assert skipped_by(association) == "anna: no bolt left"
    driven.answer("scan", 100)
    assert driven.run.outcome is Outcome.COMPLETED
    assert _verdict(driven) == NOT_OK


def test_only_the_last_attempt_of_an_action_counts() -> None:
    data = recipe(
        "A B",
        [transition("A", "A", "actions.bolt.failed", 0), transition("A", "B", "actions.bolt.done", 1)],
        [action("bolt", "A")],
    )
    driven = Driven(net_of(data))
    driven.answer("bolt", 100, error="torque low")
    driven.answer("bolt", 200, attempt=2)
    assert driven.run.outcome is Outcome.COMPLETED
    assert _verdict(driven) == OK


def test_failure_that_a_path_handles_is_not_ok() -> None:
    data = recipe(
        "A B C",
        [transition("A", "B", "actions.bolt.done"), transition("A", "C", "actions.bolt.failed")],
        [action("bolt", "A")],
    )
    driven = Driven(net_of(data))
    driven.answer("bolt", 100, error="torque low")
    assert driven.run.outcome is Outcome.COMPLETED
    assert _verdict(driven) == NOT_OK


def test_failed_run_is_never_ok() -> None:
    driven = Driven(_line(verdict="true"))
    driven.answer("bolt", 100, error="torque low")
    assert driven.run.outcome is Outcome.FAILED
    assert _verdict(driven) == NO_VERDICT
    assert verdict_of(_line(), driven.run, 1000) == NOT_OK


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("torque >= 80", OK),
        ("torque >= 90", NOT_OK),
        ("actions.bolt.result.torque > 80 and actions.scan.done", OK),
        ("'rework'", "rework"),
        ("grade", "B"),
        ("'ok'", OK),
        ("'not_ok'", NOT_OK),
        ("torque", "85"),
        ("missing", NO_VERDICT),
        ("missing > 5", NO_VERDICT),
        ("grade > 5", NO_VERDICT),
        ("steps.A.count == 1", OK),
        ("long", "x" * LONGEST_VERDICT),
        ("bolts", NO_VERDICT),
    ],
)
def test_verdict_is_the_value_of_its_expression(text: str, verdict: str) -> None:
    net = _line(verdict=text)
    driven = _completed(net, {"torque": 85, "grade": " B ", "long": "x" * 500, "bolts": [1]}, None)
    assert _verdict(driven) == verdict


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("torque >", "verdict 'torque >'"),
        ("actions.none.done", "unknown action 'none'"),
        ("torque in mirrors.lots", "asks for no mirrored set"),
    ],
)
def test_faulty_verdict_is_refused_at_load(text: str, fault: str) -> None:
    (stated,) = faults_of({**chain("A B", action("bolt", "A")), "verdict": text})
    assert fault in stated


@given(
    st.lists(st.sampled_from(ActionState), min_size=2, max_size=2),
    st.lists(st.booleans(), min_size=2, max_size=2),
    st.sampled_from(Outcome),
)
def test_default_verdict_is_the_worst_of_the_last_attempts(
    states: list[ActionState], skipped: list[bool], outcome: Outcome
) -> None:
    driven = _completed(_line(), None, None)
    associations = {
        key: replace(association, state=state, resolved_by="skipped by anna: why" if is_skipped else "")
        for (key, association), state, is_skipped in zip(driven.run.associations.items(), states, skipped, strict=True)
    }
    verdict = verdict_of(driven.net, replace(driven.run, associations=associations, outcome=outcome), 0)
    is_bad = any(skipped) or not {ActionState.FAILED, ActionState.TIMED_OUT}.isdisjoint(states)
    if outcome not in _DECIDED:
        assert verdict == NO_VERDICT
    elif is_bad:
        assert verdict == NOT_OK
    elif ActionState.UNKNOWN in states or ActionState.COMPLETED not in states or outcome is Outcome.FAILED:
        assert verdict == NO_VERDICT
    else:
        assert verdict == OK
