"""Steps, branches and paths are inserted, wrapped, moved and removed."""

from edge.features.recipes.changes import (
    AddAlternative,
    AddBranch,
    AddNextTo,
    AddPath,
    AddTransition,
    InsertAfter,
    InsertBefore,
    InsertOn,
    MovePath,
    RemovePath,
    RemoveStep,
    SetBranch,
    Unwrap,
    Wrap,
)
from edge.model.recipe import BranchType, Transition
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from tests.features.recipes.editing import BRANCHED, LINE, done, read, reason, ways, written
from tests.sfc.recipes import action, chain, transition
from tests.sfc.recipes import recipe as data_of


def test_step_is_inserted_after_another_one() -> None:
    edited = done(LINE, InsertAfter("A", "New"))
    assert ways(edited) == {
        (("A",), ("New",), ()),
        (("New",), ("B",), ()),
        (("B",), ("C",), ()),
    }
    assert [step.name for step in edited.steps] == ["A", "New", "B", "C"]


def test_inserted_step_takes_the_way_on_and_the_condition_stays_in_front() -> None:
    recipe = read(data_of("A B", [transition("A", "B", "ready")]))
    assert ways(done(recipe, InsertAfter("A", "New"))) == {(("A",), ("New",), ("ready",)), (("New",), ("B",), ())}
    assert done(recipe, InsertAfter("B", "New")).transitions[-1].target == "New"


def test_step_is_inserted_before_the_initial_one() -> None:
    edited = done(LINE, InsertBefore("A", "New"))
    assert [step.name for step in edited.steps if step.initial] == ["New"]
    assert not isinstance(compile_recipe(written(edited)), RejectedRecipe)


def test_step_is_inserted_as_first_of_a_path() -> None:
    edited = done(BRANCHED, InsertBefore("A", "New"))
    assert edited.branches[0].branches == (("New", "A"), ("B", "C"))
    assert (("I",), ("New",), ("quick",)) in ways(edited)


def test_step_is_inserted_within_a_path() -> None:
    edited = done(BRANCHED, InsertAfter("B", "New"))
    assert edited.branches[0].branches == (("A",), ("B", "New", "C"))


def test_step_after_alternatives_needs_the_transition() -> None:
    recipe = read(data_of("A B C", [transition("A", "B", "x"), transition("A", "C", "y")]))
    assert "choose the transition" in reason(recipe, InsertAfter("A", "New"))
    edited = done(recipe, InsertOn(1, "New"))
    assert (("A",), ("New",), ("y",)) in ways(edited)
    assert (("New",), ("C",), ()) in ways(edited)


def test_alternative_is_added_next_to_steps() -> None:
    edited = done(LINE, AddBranch("A", "C", BranchType.SELECTION, "by hand", "Manual", "manual"))
    assert edited.branches[0].branches == (("B",), ("Manual",))
    assert ways(edited) == {
        (("A",), ("B",), ()),
        (("A",), ("Manual",), ("manual",)),
        (("B",), ("C",), ()),
        (("Manual",), ("C",), ()),
    }


def test_parallel_path_is_added_next_to_steps() -> None:
    edited = done(LINE, AddBranch("A", "C", BranchType.SIMULTANEOUS, "both", "Photo"))
    assert ways(edited) == {(("A",), ("B", "Photo"), ()), (("B", "Photo"), ("C",), ())}


def test_parallel_path_is_added_next_to_a_run_of_steps() -> None:
    edited = done(LINE, AddNextTo("B", "C", BranchType.SIMULTANEOUS, "both", "Photo"))
    assert edited.branches[0].branches == (("B", "C"), ("Photo",))
    assert "does not follow" in reason(LINE, AddNextTo("C", "A", BranchType.SIMULTANEOUS, "both", "Photo"))


def test_alternative_is_tried_before_what_is_always_true() -> None:
    edited = done(LINE, AddAlternative("A", "Manual", "manual", "C"))
    leaving = [(way.target, way.condition, way.priority) for way in edited.transitions if way.source == "A"]
    assert sorted(leaving, key=lambda way: way[2]) == [("Manual", "manual", 1), ("B", "always", 2)]
    assert (("Manual",), ("C",), ()) in ways(edited)
    last = done(LINE, AddAlternative("A", "Manual"))
    assert [way.priority for way in last.transitions if way.source == "A"] == [1, 2]
    assert "no step or branch 'X'" in reason(LINE, AddAlternative("A", "Manual", "manual", "X"))


def test_alternative_in_a_path_keeps_its_implied_way() -> None:
    edited = done(BRANCHED, AddAlternative("B", "Manual", "manual", "End"))
    assert (("B",), ("C",), ()) in ways(edited)
    assert (("B",), ("Manual",), ("manual",)) in ways(edited)


def test_branch_between_neighbours_has_no_first_path() -> None:
    assert "nothing stands between" in reason(LINE, AddBranch("A", "B", BranchType.SELECTION, "s", "N"))


def test_further_path_is_added_moved_and_removed() -> None:
    wider = done(BRANCHED, AddPath("sel", "Third", "slow"))
    assert (("I",), ("Third",), ("slow",)) in ways(wider)
    moved = done(wider, MovePath("sel", 2, 0))
    assert moved.branches[0].branches[0] == ("Third",)
    assert ways(done(moved, RemovePath("sel", 0))) == ways(BRANCHED)
    assert "no path 7" in reason(wider, MovePath("sel", 7, 0))


def test_path_is_removed_with_what_is_in_it() -> None:
    edited = done(BRANCHED, RemovePath("sel", 1))
    assert [step.name for step in edited.steps] == ["I", "A", "End"]
    assert [own.name for own in edited.actions] == ["a"]
    assert "only path" in reason(edited, RemovePath("sel", 0))


def test_branch_of_one_path_is_unwrapped() -> None:
    edited = done(done(BRANCHED, RemovePath("sel", 1)), Unwrap("sel"))
    assert edited.branches == ()
    assert ways(edited) == {(("I",), ("A",), ("quick",)), (("A",), ("End",), ())}
    assert "several paths" in reason(BRANCHED, Unwrap("sel"))


def test_locks_of_an_unwrapped_branch_stay_at_its_elements() -> None:
    wrapped = done(LINE, Wrap("B", "B", BranchType.SIMULTANEOUS, "par"))
    locked = done(wrapped, SetBranch("par", ("wrench",), 30))
    step = next(step for step in done(locked, Unwrap("par")).steps if step.name == "B")
    assert (step.lock, step.lock_timeout_seconds) == (("wrench",), 30)


def test_removed_step_joins_its_neighbours() -> None:
    recipe = read(
        data_of("A B C", [transition("A", "B", "ready"), transition("B", "C", "actions.b.done")], [action("b", "B")])
    )
    edited = done(recipe, RemoveStep("B"))
    assert ways(edited) == {(("A",), ("C",), ("ready",))}
    assert edited.actions == ()


def test_removed_initial_step_hands_over() -> None:
    assert [step.name for step in done(LINE, RemoveStep("A")).steps if step.initial] == ["B"]
    assert "make another step the initial one" in reason(BRANCHED, RemoveStep("I"))


def test_only_step_of_a_path_is_removed_with_the_path() -> None:
    assert "remove the path" in reason(BRANCHED, RemoveStep("A"))
    assert "needs a step" in reason(read(chain("A")), RemoveStep("A"))


def test_jump_into_a_parallel_path_is_refused() -> None:
    wrapped = done(LINE, Wrap("B", "B", BranchType.SIMULTANEOUS, "par"))
    assert "could not be read afterwards" in reason(wrapped, AddTransition(Transition("C", "B", "always")))
