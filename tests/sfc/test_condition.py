"""Conditions over a view: names, three-valued logic, wake times and unmet parts."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.expression.syntax import ExpressionSyntaxError
from edge.expression.value import UNKNOWN, EvaluationError
from edge.sfc.condition import (
    Condition,
    Names,
    RunAccess,
    compile_condition,
    wake_instants,
)
from edge.sfc.identifiers import AssociationKey
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.signal import NO_MIRRORS, AskedMirrors

STEPS = frozenset({"A", "B"})
ACTIONS = {"a": (key("a@A"),), "b": (key("b@A"), key("b@B"))}


class Values:
    """A view that answers from a table: `A_T` is steps.A.T, `a_result` actions.a.result, `job_id` job.id."""

    def __init__(self, **values: Any) -> None:
        self.variables = values
        self.mirrors = AskedMirrors(NO_MIRRORS)

    def step(self, name: str, prop: str) -> Any:
        return self.variables.get(f"{name}_{prop}", UNKNOWN)

    def action(self, keys: tuple[AssociationKey, ...], prop: str) -> Any:
        return self.variables.get(f"{keys[0].action}_{prop}", UNKNOWN)

    def job(self, prop: str) -> Any:
        return self.variables.get(f"job_{prop}", UNKNOWN)

    def variable(self, name: str) -> Any:
        return self.variables.get(name, UNKNOWN)

    def wake(self, step: str, seconds: float) -> int | None:
        return round(seconds * 1000) if step == "A" else None


def made(text: str, registry: dict[str, Callable[[RunAccess], object]] | None = None) -> Condition:
    return compile_condition(text, Names(STEPS, ACTIONS, registry or {}))


def value(text: str, **values: Any) -> object:
    return made(text).evaluate(Values(**values))


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("steps.A.X and not steps.B.X", {"A_X": True, "B_X": False}, True),
        ("steps.A.T >= 2s", {"A_T": 2.0}, True),
        ("steps.A.count == 3", {"A_count": 3}, True),
        ("actions.a.state == 'failed'", {"a_state": "failed"}, True),
        ("actions.a.result.torque > 80", {"a_result": {"torque": 81}}, True),
        ("actions.a.result[1]", {"a_result": [False, True]}, True),
        ("job.id == 'J1' and job.parameters.torque == 85", {"job_id": "J1", "job_parameters": {"torque": 85}}, True),
        ("ok", {"ok": True}, True),
        ("part.colour == 'red'", {"part": {"colour": "red"}}, True),
        ("ok", {}, UNKNOWN),
        ("ok and false", {}, False),
        ("ok or true", {}, True),
        ("ok and true", {}, UNKNOWN),
        ("ok or false", {}, UNKNOWN),
        ("not ok", {}, UNKNOWN),
        ("ok == 1", {}, UNKNOWN),
        ("(a or b) and c", {"a": False, "b": True, "c": False}, False),
    ],
)
def test_condition_evaluates_to_the_value_of_its_names(text: str, values: dict[str, Any], expected: object) -> None:
    assert value(text, **values) is expected


@pytest.mark.parametrize(
    ("text", "constant"),
    [("always", True), ("never", False), ("1 < 2", True), ("x or true", True), ("x and false", False), ("x", UNKNOWN)],
)
def test_constant_condition_is_evaluated_at_compile_time(text: str, constant: object) -> None:
    assert made(text).constant is constant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("steps", "must name a step"),
        ("steps.C.X", "unknown step 'C' (at character 1)"),
        ("steps.A", "must be followed by one of X, T, count, done"),
        ("steps.A.colour", "'colour' is none of X, T, count, done"),
        ("steps.A.T.x", "steps.A.T has no parts"),
        ("actions.c.done", "unknown action 'c'"),
        ("x or actions.c.done", "(at character 6)"),
        ("actions.a", "must be followed by one of state, done"),
        ("actions.a.state.x", "actions.a.state has no parts"),
        ("job.colour", "'colour' is none of id, scope, parameters"),
        ("job.id.x", "job.id has no parts"),
        ("5", "'5' is 5, which is neither true nor false"),
        ("not 'a'", "neither true nor false"),
        ("1 == 'a'", "compares a number with a string"),
        ("5s", "neither true nor false"),
    ],
)
def test_invalid_condition_is_refused_at_load(text: str, reason: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as error:
        made(text)
    assert reason in str(error.value)


def test_value_of_a_wrong_kind_raises_naming_the_part() -> None:
    with pytest.raises(EvaluationError, match="'torque > 80' compares a string with a number"):
        value("always and torque > 80", torque="85")
    with pytest.raises(EvaluationError, match="'torque' is 85"):
        value("torque", torque=85)


def test_condition_lists_the_steps_and_actions_that_make_it_live() -> None:
    condition = made("steps.A.T > 2s or actions.a.failed or actions.b.result.x or steps.B.X")
    assert condition.timed_steps == {"A"}
    assert condition.state_actions == {"a"}
    for prop in ("failed", "timed_out", "state == 'x'", "done"):
        assert made(f"actions.a.{prop}").state_actions == {"a"}
    assert made("actions.a.attempts > 1").state_actions == frozenset()


@pytest.mark.parametrize(
    ("text", "instants"),
    [
        ("steps.A.T >= 2s", [2000, 2001]),
        ("2s < steps.A.T", [2000, 2001]),
        ("not (steps.A.T < 1.5)", [1500, 1501]),
        ("steps.A.T > limit", [7000, 7001]),
        ("steps.A.T > word", []),
        ("steps.A.T > nothing", []),
        ("steps.A.T > 1e308", []),
        (f"steps.A.T > {'9' * 900}", []),
        ("steps.A.T > -1e308", []),
        ("steps.A.T > ok", []),
        ("steps.B.T > 2s", []),
        ("steps.A.T > steps.A.T", []),
        ("steps.A.T > steps.B.T", [4000, 4001]),
        ("steps.B.T < steps.A.T", [4000, 4001]),
        ("ok", []),
    ],
)
def test_only_time_comparisons_of_active_steps_have_wake_times(text: str, instants: list[int]) -> None:
    view = Values(limit=7, word="x", ok=True, A_X=True, A_T=3.0, B_X=False, B_T=4.0)
    assert wake_instants(made(text), view) == instants


def test_bound_that_cannot_be_evaluated_has_no_wake_time() -> None:
    assert wake_instants(made("steps.A.T > (x == 1)"), Values(x="a")) == []


def test_unmet_parts_are_reported_with_their_present_values() -> None:
    condition = made("ok and torque >= 80 and (left or right) and not steps.A.X")
    view = Values(ok=True, torque=61, left=False, A_X=True)
    assert [(unmet.text, str(unmet.because)) for unmet in condition.explain(view)] == [
        ("torque >= 80", "torque is 61"),
        ("left", "left is false"),
        ("right", "right: no value yet"),
        ("not steps.A.X", "steps.A.X is true"),
    ]
    (unmet,) = made("never").explain(view)
    assert (unmet.text, str(unmet.because)) == ("never", "never true")
    assert str(made("torque == 'a'").explain(view)[0].because).startswith("\"torque == 'a'\" compares")
    assert made("ok").explain(view) == ()


def test_identifier_takes_precedence_over_a_job_variable() -> None:
    registry: dict[str, Callable[[RunAccess], object]] = {"ok": lambda view: view.variable("torque") == 85}
    assert made("ok", registry).evaluate(Values(torque=85, ok=False)) is True
    assert made("ok", registry).constant is UNKNOWN


def test_identifier_without_value_falls_back_to_the_variable() -> None:
    assert made("ok", {"ok": lambda _: UNKNOWN}).evaluate(Values(ok=True)) is True


def test_identifier_that_raises_is_reported_by_name() -> None:
    def broken(_: RunAccess) -> object:
        raise KeyError("torque")

    with pytest.raises(EvaluationError, match="the identifier 'ok' failed"):
        made("ok", {"ok": broken}).evaluate(Values())


@given(st.text(alphabet="abAT.()[]'\"<>=! 01sXstepsactions#-&|", max_size=80))
def test_any_text_is_evaluated_or_refused(text: str) -> None:
    try:
        condition = made(text)
    except ExpressionSyntaxError:
        return
    try:
        assert condition.evaluate(Values(a=1, b=True, A_T=1.0)) in {True, False, UNKNOWN}
    except EvaluationError:
        return


@pytest.mark.parametrize(
    "text", ["steps.A.T + 1 > 5", "-steps.A.T < 0", "max(steps.A.T, 2) > 5", "if(ok, steps.A.T, 1) > 2"]
)
def test_calculation_with_the_time_of_a_step_is_refused(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError, match="cannot be part of a calculation"):
        made(text)


def test_time_of_a_step_compares_with_a_calculated_bound() -> None:
    view = Values(limit=3, A_X=True, A_T=3.0)
    assert wake_instants(made("steps.A.T > 2 * limit + 1"), view) == [7000, 7001]
    assert value("steps.A.T > 2 * limit + 1", A_T=7.5, limit=3) is True


def test_calculation_in_a_condition_waits_for_its_values() -> None:
    assert value("abs(torque - target) <= 0.5", torque=85.2, target=85) is True
    assert value("abs(torque - target) <= 0.5", torque=85.2) is UNKNOWN
    assert value("coalesce(torque, 0) > 5") is False
