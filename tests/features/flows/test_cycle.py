"""A cycle advances by outcomes; obsolete outcomes are ignored."""

from typing import Any

import pytest

from edge.features.flows.cycle import (
    AttemptCompleted,
    AttemptFailed,
    AttemptInterrupted,
    AttemptStarted,
    ComponentStopped,
    Cycle,
    CycleDue,
    CycleStatus,
    NodeTerminated,
    Outcome,
    advance,
    new_cycle,
)
from edge.features.flows.nodes.kind import Output, Withheld
from edge.features.flows.plan import Plan
from tests.features.flows.documents import flow, node, plan_of

CHAIN = plan_of(
    flow([node("a", "constant", value=1), node("b", "delay", seconds=1), node("c", "delay", seconds=1)], "a>b b>c")
)
TWO_PARTS = plan_of(
    flow([node("a", "constant", value=1), node("b", "delay", seconds=1), node("x", "constant", value=2)], "a>b")
)


def play(plan: Plan, *outcomes: Outcome) -> tuple[Cycle, list[str]]:
    """Return the cycle after these outcomes, one a millisecond, and every node that was to start."""
    cycle = new_cycle(plan, 0, 0, {})
    started: list[str] = []
    for now, outcome in enumerate((CycleDue(), *outcomes)):
        step = advance(plan, cycle, outcome, now)
        cycle, started = step.cycle, [*started, *step.start]
    return cycle, started


def done(name: str, value: Any = 1) -> tuple[Outcome, Outcome]:
    return AttemptStarted(name), AttemptCompleted(name, Output(value))


def statuses(cycle: Cycle) -> dict[str, str]:
    return {name: task.status.value for name, task in cycle.tasks.items()}


def reasons(cycle: Cycle) -> dict[str, str | None]:
    return {name: None if task.reason is None else str(task.reason) for name, task in cycle.tasks.items()}


def test_node_starts_when_its_predecessor_completed() -> None:
    cycle, started = play(CHAIN, *done("a"))
    assert started == ["a", "b"]
    assert statuses(cycle) == {"a": "completed", "b": "pending", "c": "registered"}
    assert cycle.status is CycleStatus.RUNNING


def test_cycle_ends_completed_with_the_times_of_its_tasks() -> None:
    cycle, _ = play(CHAIN, *done("a"), *done("b"), *done("c"))
    assert cycle.status is CycleStatus.COMPLETED
    assert (cycle.tasks["b"].started_at, cycle.tasks["b"].ended_at, cycle.ended_at) == (3, 4, 6)


def test_failure_skips_dependents_only() -> None:
    cycle, started = play(TWO_PARTS, AttemptStarted("a"), AttemptFailed("a", "broken"))
    assert started == ["a", "x"]
    assert statuses(cycle) == {"a": "failed", "b": "skipped", "x": "pending"}
    assert reasons(cycle) == {"a": "broken", "b": "dependency_failed", "x": None}


def test_skipped_node_skips_its_dependents_with_its_own_reason() -> None:
    cycle, _ = play(CHAIN, AttemptStarted("a"), AttemptCompleted("a", Output(None, Withheld.SWITCH)))
    assert reasons(cycle) == {"a": None, "b": "switch", "c": "dependency_skipped"}
    assert cycle.status is CycleStatus.COMPLETED


def test_failed_node_is_retried_until_its_retries_are_used_up() -> None:
    plan = plan_of(flow([{**node("a", "fail"), "retries": 1}]))
    cycle, started = play(
        plan, AttemptStarted("a"), AttemptFailed("a", "x"), AttemptStarted("a"), AttemptFailed("a", "y")
    )
    assert started == ["a", "a"]
    task = cycle.tasks["a"]
    assert (task.status.value, task.reason, task.attempts, task.started_at, task.ended_at) == ("failed", "y", 2, 1, 4)


def test_interrupted_node_runs_again_only_if_its_kind_is_repeatable() -> None:
    again, started = play(CHAIN, AttemptStarted("a"), AttemptInterrupted("a"))
    assert (started, statuses(again)["a"]) == (["a", "a"], "pending")
    acting = plan_of(flow([node("a", "constant", value=1), node("p", "mqtt.publish", topic="t")], "a>p"))
    failed, started = play(acting, *done("a"), AttemptStarted("p"), AttemptInterrupted("p"))
    assert (started, failed.tasks["p"].reason) == (["a", "p"], "interrupted")
    assert failed.status is CycleStatus.FAILED


def test_terminated_node_skips_its_dependents() -> None:
    cycle, _ = play(CHAIN, AttemptStarted("a"), NodeTerminated("a", "by hand"))
    assert statuses(cycle) == {"a": "terminated", "b": "skipped", "c": "skipped"}
    assert reasons(cycle) == {"a": "by hand", "b": "dependency_failed", "c": "dependency_skipped"}
    assert cycle.status is CycleStatus.TERMINATED


def test_failure_takes_precedence_over_termination() -> None:
    cycle, _ = play(
        TWO_PARTS,
        AttemptStarted("a"),
        NodeTerminated("a", "by hand"),
        AttemptStarted("x"),
        AttemptFailed("x", "broken"),
    )
    assert cycle.status is CycleStatus.FAILED


def test_stopped_component_skips_nodes_that_have_not_started() -> None:
    cycle, started = play(TWO_PARTS, AttemptStarted("a"), ComponentStopped(0), AttemptCompleted("a", Output(1)))
    assert started == ["a", "x"]
    assert statuses(cycle) == {"a": "completed", "b": "skipped", "x": "pending"}
    assert reasons(cycle)["b"] == "component_stopped"


def test_component_stopped_before_the_cycle_does_not_start() -> None:
    step = advance(TWO_PARTS, new_cycle(TWO_PARTS, 0, 0, {}), CycleDue(frozenset({0})), 0)
    assert step.start == ("x",)
    assert reasons(step.cycle) == {"a": "component_stopped", "b": "component_stopped", "x": None}


def test_merge_runs_with_the_available_inputs() -> None:
    nodes = [node("a", "constant", value=1), node("s", "switch", when="input > 5"), node("m", "merge")]
    plan = plan_of(flow(nodes, "a>s s>m a>m"))
    cycle, started = play(plan, *done("a"), AttemptStarted("s"), AttemptCompleted("s", Output(None, Withheld.SWITCH)))
    assert started == ["a", "s", "m"]
    assert statuses(cycle)["m"] == "pending"


@pytest.mark.parametrize(
    "late",
    [
        AttemptStarted("a"),
        AttemptCompleted("a", Output(9)),
        AttemptFailed("a", "late"),
        AttemptInterrupted("a"),
        NodeTerminated("a", "late"),
        ComponentStopped(7),
    ],
)
def test_outcome_after_the_end_is_ignored(late: Outcome) -> None:
    before, _ = play(CHAIN, AttemptStarted("a"), NodeTerminated("a", "by hand"))
    step = advance(CHAIN, before, late, 99)
    assert (step.cycle, step.start) == (before, ())


def test_memory_of_a_node_survives_cycles_that_skip_the_node() -> None:
    plan = plan_of(flow([node("a", "constant", value=1), node("c", "changed")], "a>c"))
    cycle, _ = play(plan, *done("a"), AttemptStarted("c"), AttemptCompleted("c", Output(1, memory=[1])))
    assert cycle.remembered() == {"c": [1]}
    following = new_cycle(plan, 1, 60_000, cycle.remembered())
    skipped = advance(plan, following, CycleDue(frozenset({0})), 60_000).cycle
    assert skipped.remembered() == {"c": [1]}
