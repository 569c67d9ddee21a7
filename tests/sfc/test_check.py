"""Every fault of a recipe is found and reported with its place."""

from typing import Any

import pytest

from tests.sfc.recipes import Json, action, branch, chain, faults_of, net_of, recipe, transition, wait
from tests.sfc.test_evolve_locks import locked

PAR = branch("par", "simultaneous", "A B", "C")
INTO = [transition("I", "par"), transition("par", "End")]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"steps": []}, "exactly one step must be initial, not none"),
        ({"steps": [{"name": "A"}]}, "exactly one step must be initial, not none"),
        (chain("A B A"), "the name 'A' names 2 steps or branches"),
        (recipe("A B", [], [], branch("sel", "selection")), "branch 'sel' has no path"),
        (recipe("A B", [], [], branch("sel", "selection", "B", "")), "branch 'sel': path 1 is empty"),
        (
            recipe("A B", [], [], branch("sel", "selection", "B C")),
            "branch 'sel': path 0 names the unknown step or branch 'C'",
        ),
        (
            recipe("A B", [], [], branch("one", "selection", "B"), branch("two", "selection", "B")),
            "'B' stands in more than one path: one[0], two[0]",
        ),
        (recipe("A B", [], [], branch("one", "selection", "B B")), "'B' stands in more than one path: one[0], one[0]"),
        (recipe("A", [], [], branch("x", "selection", "x")), "branch 'x' contains itself: x in x"),
        (
            recipe("A", [], [], branch("x", "selection", "y"), branch("y", "selection", "x")),
            "branch 'x' contains itself: x in y in x",
        ),
        (
            recipe("A", [transition("A", "Q")]),
            "transitions[0] (A → Q): unknown target 'Q', no step or branch has this name",
        ),
        (
            recipe("A", [transition("Q", "A")]),
            "transitions[0] (Q → A): unknown source 'Q', no step or branch has this name",
        ),
        (recipe("A", [], [action("a", "Q")]), "actions[0] (a, N in Q): unknown step 'Q'"),
        (
            chain("A", action("a", "A", "SL")),
            "actions[0] (a, SL in A): qualifier SL needs a duration_seconds above 0",
        ),
        (
            chain("A", action("a", "A", "R")),
            "actions[0] (a, R in A): nothing to reset, no S, SD, DS or SL of action 'a'",
        ),
        (
            chain("A", wait("a", "A", "P0")),
            "actions[0] (a, P0 in A): P0 cannot wait for an event (pull_event), its step is left already",
        ),
        (
            chain("A B", action("a", "A", "L", duration_seconds=1), action("a", "B", "SD", duration_seconds=1)),
            "action 'a' has 2 timed qualifiers; an action may have one",
        ),
        (chain("A B C D", action("a", "Q")), "actions[0] (a, N in Q): unknown step 'Q'"),
        (
            recipe("A B", [transition("A", "B", "steps.Q.X")]),
            "transitions[0] (A → B): condition 'steps.Q.X': unknown step 'Q' (at character 1)",
        ),
        (recipe("A B", []), "step 'B' cannot be reached from the initial step 'A'"),
        (
            recipe("A B C End", [transition("par", "End")], [], branch("par", "simultaneous", "A B", "C")),
            "the initial step 'A' stands inside the simultaneous branch 'par'",
        ),
        (
            recipe("I A B C End", [*INTO, transition("A", "End")], [], PAR),
            "transitions[2] (A → End): unsafe, A is in path 0 of par and End is outside all simultaneous branches",
        ),
        (
            recipe("I A B C End", [*INTO, transition("I", "B", "x")], [], PAR),
            "transitions[2] (I → B): unsafe, I is outside all simultaneous branches and B is in path 0 of par",
        ),
        (
            recipe("I A B C End", [*INTO, transition("A", "C", "x")], [], PAR),
            "transitions[2] (A → C): unsafe, A is in path 0 of par and C is in path 1 of par",
        ),
        (
            recipe("A B", [transition("A", "B"), transition("B", "A")]),
            "livelock: A → B → A: a loop of steps without actions over conditions that are always true",
        ),
    ],
)
def test_a_fault_is_reported_with_its_place(data: Json, fault: str) -> None:
    assert fault in faults_of(data)


@pytest.mark.parametrize("way_out", [transition("A", "B", "never"), transition("A", "A", "always")])
def test_path_with_unreachable_end_is_reported(way_out: Json) -> None:
    data = recipe("I A B C End", [*INTO, way_out], [action("a", "A")], PAR)
    assert faults_of(data) == ("branch 'par': the end of path 0 cannot be reached from step 'A'",)


def test_all_faults_of_all_kinds_are_reported_together() -> None:
    data = recipe(
        "A B B",
        [transition("A", "Q"), transition("A", "B", "a = 1")],
        [action("x", "A", "L"), {**action("y", "Q"), "colour": 1}],
    )
    found = "\n".join(faults_of(data))
    for part in (
        "'B' names 2",
        "unknown target 'Q'",
        "write '=='",
        "duration_seconds",
        "unknown step 'Q'",
        "'colour'",
    ):
        assert part in found


@pytest.mark.untraced
def test_excessive_nesting_is_reported_without_recursion() -> None:
    branches = [branch(f"b{n}", "selection", f"b{n + 1}") for n in range(5000)]
    data = recipe("A B", [transition("A", "b0")], [], *branches, branch("b5000", "selection", "B"))
    assert any("nested deeper than 32" in fault for fault in faults_of(data))


@pytest.mark.untraced
def test_a_long_chain_is_checked_quickly() -> None:
    net = net_of(chain(" ".join(f"S{n}" for n in range(10_000))))
    assert len(net.transitions) == 9_999


@pytest.mark.untraced
def test_action_in_very_many_steps_is_checked_quickly() -> None:
    names = [f"S{n}" for n in range(3000)]
    net = net_of(chain(" ".join(names), *(action("a", name, "S") for name in names)))
    assert len(net.starting["a"]) == 3000


@pytest.mark.parametrize(
    ("data", "warning"),
    [
        (
            recipe("A B C", [transition("A", "B"), transition("A", "C", "x", 1)]),
            "transitions[1] (A → C) never clears: transitions[0] (A → B) is always true and comes first",
        ),
        (
            recipe(
                "A X Y Z",
                [transition("A", "s"), transition("s", "Y", "y", 1), transition("s", "Z")],
                [],
                branch("s", "selection", "X", "Y"),
            ),
            "transitions[0] (A → s) never leads to Y: the way to X is always open and comes first",
        ),
        (chain("A B", action("a", "A", "S")), "action 'a' is set and never reset: it stays set after the job"),
        (
            recipe("A B", [transition("A", "B"), transition("B", "A")], [action("a", "A")]),
            "no terminal step: every step has an outgoing transition, the job never completes",
        ),
        (
            recipe(
                "A X Y E",
                [transition("A", "X", "x"), transition("A", "Y", "y"), transition("s", "X", "z"), transition("s", "E")],
                [],
                branch("s", "selection", "X", "Y"),
            ),
            "transitions[2] (s → X) never counts: what leads to this path names its first element, not the branch",
        ),
        (
            recipe(
                "A X Y Z",
                [
                    *(transition("A", "s"), transition("s", "Z"), transition("X", "Y", "again", 1)),
                    *(transition("s", "X", "x"), transition("s", "Y", "y")),
                ],
                [],
                branch("s", "selection", "X", "Y"),
            ),
            "transitions[2] (X → Y) never clears: transitions[1] (s → Z) is always true and comes first",
        ),
        (chain("A B", action("a", "B", "P0")), "actions[0] (a, P0 in B) is never sent: nothing leaves this step"),
    ],
)
def test_probable_mistake_is_a_warning(data: Json, warning: str) -> None:
    assert net_of(data).warnings == (warning,)


@pytest.mark.parametrize(
    "data",
    [
        recipe("A B C", [transition("A", "B", "x"), transition("A", "C", "always", 1)]),
        recipe(
            "A B C",
            [transition("A", "B"), transition("A", "C", "actions.a.failed", 1)],
            [action("a", "A")],
        ),
        chain("A B", action("a", "A", "S"), action("a", "B", "R")),
        chain("A B", action("a", "A", "SL", duration_seconds=2)),
        recipe("A B End", [transition("A", "B", "x"), transition("B", "A"), transition("B", "End", "y", -1)]),
    ],
)
def test_valid_recipe_has_no_warning(data: Json) -> None:
    assert net_of(data).warnings == ()


def test_path_without_end_after_a_selection_is_reported() -> None:
    data = recipe(
        "A X Y P Q R E",
        [
            *(
                transition("A", "sel"),
                transition("sel", "X", "x"),
                transition("sel", "Y", "y"),
                transition("sel", "both"),
            ),
            *(transition("both", "E"), transition("P", "R", "never")),
        ],
        [],
        branch("sel", "selection", "X", "Y"),
        branch("both", "simultaneous", "P R", "Q"),
    )
    assert faults_of(data) == ("branch 'both': the end of path 0 cannot be reached from step 'P'",)


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
        "action 'clamp' of step 'B' continues after the step: lock 'wrench' is released before its reset",
    )
    both = locked(locked(chain("A B C D", *actions), "B", "wrench"), "C", "wrench")
    assert not net_of(both).warnings
