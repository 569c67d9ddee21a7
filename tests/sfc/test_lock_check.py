"""Locks that could cause a deadlock between jobs are refused when the recipe is loaded."""

from typing import Any

import pytest

from tests.sfc.recipes import action, branch, chain, faults_of, net_of, recipe, transition
from tests.sfc.test_lock_wait import locked


def test_lock_ordered_before_a_held_one_is_refused() -> None:
    (fault,) = faults_of(locked(locked(chain("A B C"), "A", "wrench"), "B", "crane"))
    assert fault == (
        "transitions[0] (A → B): acquires lock 'crane' while the job may hold 'wrench'; locks are acquired in "
        "alphabetical order: acquire 'crane' together with 'wrench', or leave the steps of 'wrench' first"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [(("crane",), ("wrench",)), (("crane", "wrench"), ("crane",)), (("wrench",), ("wrench",)), (("a",), ("a", "b"))],
)
def test_locks_in_their_order_are_allowed(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    net_of(locked(locked(chain("A B C"), "A", *first), "B", *second))


def parallel() -> dict[str, Any]:
    ways = [transition("I", "both"), transition("both", "End")]
    return recipe("I A A2 B B2 End", ways, [], branch("both", "simultaneous", "A A2", "B B2"))


def test_locks_acquired_inside_parallel_paths_are_refused() -> None:
    data = locked(locked(parallel(), "A2", "crane"), "B2", "wrench")
    (fault,) = faults_of(data)
    assert "acquires lock 'crane' while the job may hold 'wrench'" in fault


def test_locks_acquired_together_for_parallel_paths_are_allowed() -> None:
    net_of(locked(locked(parallel(), "A", "crane"), "B", "wrench"))
    net_of(locked(locked(parallel(), "A2", "wrench"), "B2", "wrench"))


def test_a_timeout_without_a_lock_is_refused() -> None:
    data = chain("A B")
    data["steps"][1]["lock_timeout_seconds"] = 5
    assert faults_of(data) == ("'B': lock_timeout_seconds without a lock",)


@pytest.mark.parametrize("value", ["wrench", [""], ["a", "a"], [1], [f"l{number}" for number in range(21)]])
def test_invalid_lock_is_refused(value: object) -> None:
    data = chain("A B")
    data["steps"][1]["lock"] = value
    assert "'lock' must" in faults_of(data)[0]


def test_a_stored_action_that_outlives_its_lock_is_reported() -> None:
    actions = action("clamp", "B", "S"), action("clamp", "C", "R")
    assert net_of(locked(chain("A B C D", *actions), "B", "wrench")).warnings == (
        "action 'clamp' of step 'B' goes on after the step: lock 'wrench' is released before its reset",
    )
    both = locked(locked(chain("A B C D", *actions), "B", "wrench"), "C", "wrench")
    assert not net_of(both).warnings
