"""The check of recipes: each kind of finding, where it is, and the script that shows it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingKind, FindingLevel
from tests.features.recipes.findings import active, findings, found, played
from tests.features.recipes.recipes import Json, action, net_of, recipe, wait, way

TIMED_OUT = "actions.a.timed_out"

DEAD_ENDS: dict[str, tuple[Json, str]] = {
    "only a way for the failure": (
        recipe(way("A", "B", "actions.a.failed"), actions=(action("a", "A"), action("b", "B"))),
        "A",
    ),
    "never": (recipe(way("A", "B", "never")), "A"),
    "misspelt state": (recipe(way("A", "B", "actions.a.state == 'complete'"), actions=(action("a", "A"),)), "A"),
    "contradiction": (recipe(way("A", "B", "torque > 5 and torque < 3")), "A"),
    "in a path beside one that ends": (
        recipe(
            way("I", "both"),
            way("X", "X2", "actions.x.failed"),
            way("both", "End"),
            actions=(action("x", "X"), action("y", "Y"), action("z", "X2")),
            branches=[{"name": "both", "type": "simultaneous", "branches": [["X", "X2"], ["Y"]]}],
        ),
        "X",
    ),
    "after the time for it": (
        recipe(way("A", "B", "steps.A.T < 5s and actions.a.done"), actions=(action("a", "A"), action("b", "B"))),
        "A",
    ),
    "result of a failure": (
        recipe(
            way("A", "B", "actions.a.done"),
            way("A", "C", "actions.a.failed"),
            way("C", "B", "actions.a.result.code == 7 or actions.c.result.code == 7 and never"),
            actions=(action("a", "A"), action("c", "C"), action("b", "B")),
        ),
        "C",
    ),
    "data that cannot change": (
        recipe(
            way("A", "B", "actions.a.result.ok"),
            way("A", "C", "coalesce(actions.a.result.ok, false) == false"),
            way("B", "C", "not actions.a.result.ok"),
            actions=(action("a", "A"),),
        ),
        "B",
    ),
    "unknown outcome alone": (
        recipe(way("A", "B", "actions.a.unknown"), actions=(action("a", "A"), action("b", "B"))),
        "A",
    ),
}


@pytest.mark.parametrize("name", DEAD_ENDS)
def test_dead_end_is_found_and_its_script_shows_it(name: str) -> None:
    data, step = DEAD_ENDS[name]
    (item,) = [item for item in findings(data) if item.kind is FindingKind.DEAD_END]
    assert (item.level, item.element.name) == (FindingLevel.FAULT, step)
    assert str(item.message).startswith(f"step {step}: ")
    trace = played(data, item)
    assert trace.final == "running"
    assert step in active(trace)


@pytest.mark.parametrize("name", DEAD_ENDS)
def test_consequences_of_a_dead_end_are_not_reported(name: str) -> None:
    data, step = DEAD_ENDS[name]
    assert {item for item in found(data, information=False) if item[0].startswith("never")} == set()
    assert [kind for kind, element in found(data, information=False) if element == step] == ["dead-end"]


def test_dead_end_with_a_lock_keeps_the_lock() -> None:
    data = recipe(
        way("A", "B", "actions.a.failed"), actions=(action("a", "A"), action("b", "B")), locks={"A": ["crane"]}
    )
    (item,) = [item for item in findings(data) if item.level is FindingLevel.FAULT]
    assert (item.kind, item.element.name) == (FindingKind.LOCK_KEPT, "A")
    assert "crane" in str(item.message)
    assert played(data, item).final == "running"


@pytest.mark.parametrize("intervention", ["force", "complete"])
def test_dead_end_that_a_person_can_leave_is_an_information(intervention: str) -> None:
    data = recipe(
        way("A", "B", "actions.a.failed"), actions=(action("a", "A"), action("b", "B")), at_steps={"A": [intervention]}
    )
    (item,) = [item for item in findings(data) if item.kind is FindingKind.DEAD_END]
    assert item.level is FindingLevel.INFORMATION


SOUND: dict[str, Json] = {
    "failure that fails the job": recipe(way("A", "B"), actions=(action("a", "A"),)),
    "event that is awaited": recipe(way("A", "B", "actions.w.done"), actions=(wait("w", "A"),)),
    "failure that waits for a person": recipe(way("A", "B"), actions=(action("a", "A", interventions=["retry"]),)),
    "lock that another job holds": recipe(way("A", "B"), locks={"B": ["crane"]}),
    "bounded retry": recipe(
        way("A", "B", "actions.a.done"),
        way("A", "A2", "actions.a.failed and steps.A.count < 3"),
        way("A2", "A", "always"),
        actions=(action("a", "A"), action("r", "A2")),
    ),
    "value with all its cases": recipe(
        way("A", "B", "actions.a.result.ok"), way("A", "C", "always", 1), actions=(action("a", "A"), action("c", "C"))
    ),
    "timeout to another step": recipe(
        way("A", "B"), way("A", "C", TIMED_OUT), actions=(action("a", "A"), action("c", "C"))
    ),
    "time to another step": recipe(
        way("A", "B", "actions.w.done"), way("A", "C", "steps.A.T >= 10s"), actions=(wait("w", "A"), action("c", "C"))
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_recipe_has_neither_fault_nor_warning(name: str) -> None:
    assert found(SOUND[name], information=False) == set()


def test_swallowed_failure_is_found_and_its_script_shows_it() -> None:
    data = recipe(way("A", "B", "actions.a.done or actions.a.failed"), actions=(action("a", "A"),))
    (item,) = [item for item in findings(data) if item.level is FindingLevel.WARNING]
    assert (item.kind, item.element.name) == (FindingKind.FAILURE_SWALLOWED, "a")
    assert played(data, item).final == "completed"


@pytest.mark.parametrize(
    ("verdict", "is_swallowed"), [("actions.a.done", False), ('actions.a.done or x == "good"', True), ("true", True)]
)
def test_failure_after_which_the_verdict_is_not_ok_is_not_swallowed(verdict: str, *, is_swallowed: bool) -> None:
    """A prompt without an answer led to a result that is not good, as it had to, and was a warning."""
    data = recipe(way("A", "B", "actions.a.done or actions.a.failed"), actions=(action("a", "A"),))
    assert found(data | {"verdict": verdict}, information=False) == (
        {("failure-swallowed", "a")} if is_swallowed else set()
    )


@pytest.mark.parametrize("then", [action("b", "B"), wait("b", "B")])
def test_failure_that_something_follows_is_not_swallowed(then: Json) -> None:
    data = recipe(way("A", "B", "actions.a.done or actions.a.failed"), actions=(action("a", "A"), then))
    assert found(data, information=False) == set()


def test_missing_case_of_data_is_an_information_with_these_data() -> None:
    data = recipe(way("A", "B", "torque_ok"), actions=(action("a", "A"),))
    (item,) = findings(data)
    assert (item.level, item.kind, item.element.name) == (FindingLevel.INFORMATION, FindingKind.NOT_EXHAUSTIVE, "A")
    assert "torque_ok is false" in str(item.message)
    trace = played(data, item)
    assert (trace.final, active(trace)) == ("running", {"A"})


def test_name_may_be_absent() -> None:
    data = recipe(way("A", "B", "torque > 5"), way("A", "C", "torque <= 5"), actions=(action("a", "A"),))
    (item,) = findings(data)
    assert (item.kind, "torque: no value yet" in str(item.message)) == (FindingKind.NOT_EXHAUSTIVE, True)
    assert played(data, item).final == "running"


@pytest.mark.parametrize("name", ["actions.a.result.ok", "torque_ok"])
def test_case_at_the_last_try_is_named(name: str) -> None:
    """The message named a value that had not come yet, and not the one after the last try."""
    data = recipe(
        way("A", "B", name),
        way("A", "R", f"not {name} and steps.A.count < 3"),
        way("R", "A"),
        actions=(action("a", "A", interventions=["retry"]),),
    )
    (item,) = findings(data)
    assert item.kind is FindingKind.NOT_EXHAUSTIVE
    assert f"{name} is false, steps.A.count is 3" in str(item.message)
    trace = played(data, item)
    assert (trace.final, [step["step"] for step in trace.steps if step["active"]].count("A")) == ("running", 3)


def test_loop_over_failures_without_a_count_is_an_information() -> None:
    data = recipe(
        way("A", "B", "actions.a.done"),
        way("A", "R", "actions.a.failed"),
        way("R", "A"),
        actions=(action("a", "A"), action("r", "R")),
    )
    assert found(data) == {("endless-loop", "a")}


def test_command_without_a_time_limit_is_an_information() -> None:
    data = recipe(way("A", "B"), actions=(action("a", "A", timeout_seconds=0), wait("w", "A", timeout_seconds=0)))
    assert found(data) == {("no-time-limit", "a")}


def test_lock_kept_while_a_person_is_awaited_is_an_information() -> None:
    data = recipe(way("A", "B"), actions=(action("a", "A", interventions=["retry"]),), locks={"A": ["crane"]})
    assert found(data) == {("no-time-limit", "A")}


@cache
def shipped() -> dict[str, Any]:
    """Return each recipe of the examples and the simulator by its file."""
    files = [*Path("docs/examples").rglob("*.json"), *Path("edge/features/simulator/recipes").glob("*.json")]
    contents = {str(file): json.loads(file.read_text(encoding="utf-8")) for file in files}
    return {name: data for name, data in contents.items() if isinstance(data, dict) and "steps" in data}


@pytest.mark.parametrize("name", shipped())
def test_recipe_of_examples_has_neither_fault_nor_warning(name: str) -> None:
    result = check_net(net_of(shipped()[name]))
    assert [item.message for item in result.findings if item.level is not FindingLevel.INFORMATION] == []


@pytest.mark.parametrize("name", [name for name in shipped() if "rear-axle" in name])
def test_axle_has_a_way_for_every_result(name: str) -> None:
    assert check_net(net_of(shipped()[name])).findings == ()
