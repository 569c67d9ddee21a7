"""Names with their references, properties, transitions and actions are changed."""

import msgspec
import pytest

from edge.features.recipes.changes import (
    AddAction,
    AddTransition,
    CopyAction,
    InsertAfter,
    RemoveAction,
    RemoveTransition,
    RenameAction,
    RenameElement,
    SetAction,
    SetInitial,
    SetRecipe,
    SetStep,
    SetTransition,
)
from edge.features.recipes.edits import EditRefused, edit
from edge.features.recipes.property_edits import renamed_in_condition
from edge.model.recipe import Intervention, Step, Transition
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from tests.features.recipes.editing import BRANCHED, LINE, done, read, reason, ways, written
from tests.sfc.recipes import action, branch, transition
from tests.sfc.recipes import recipe as data_of


def test_every_reference_follows_a_new_name() -> None:
    recipe = read(
        data_of(
            "I A B",
            [transition("I", "par"), transition("par", "B", "steps.A.T > 2s and actions.a.done and A == 3")],
            [action("a", "A")],
            branch("par", "simultaneous", "A"),
        )
    )
    edited = done(done(recipe, RenameElement("A", "Step 2")), RenameAction("a", "fit"))
    assert edited.branches[0].branches == (("Step 2",),)
    assert edited.actions[0].step == "Step 2"
    assert edited.transitions[1].condition == 'steps["Step 2"].T > 2s and actions.fit.done and A == 3'
    assert not isinstance(compile_recipe(written(edited)), RejectedRecipe)


@pytest.mark.parametrize("name", ["", "B", "sel"])
def test_name_that_is_used_or_empty_is_refused(name: str) -> None:
    assert edit(BRANCHED, RenameElement("A", name)) != BRANCHED
    assert isinstance(edit(BRANCHED, RenameElement("A", name)), EditRefused)
    assert isinstance(edit(BRANCHED, InsertAfter("C", name)), EditRefused)


def test_condition_that_cannot_be_read_keeps_its_text() -> None:
    assert renamed_in_condition("steps.A.T >", "steps", "A", "B") == "steps.A.T >"
    quoted = renamed_in_condition("steps.A.X or steps.A.T > 1", "steps", "A", 'a "b" \\ c')
    assert quoted == 'steps["a \\"b\\" \\\\ c"].X or steps["a \\"b\\" \\\\ c"].T > 1'
    assert renamed_in_condition(quoted, "steps", 'a "b" \\ c', "A") == "steps.A.X or steps.A.T > 1"


def test_properties_are_set() -> None:
    edited = done(LINE, SetStep("B", Step("other", interventions=(Intervention.FORCE,), lock=("x",), title="Fit")))
    assert edited.steps[1] == Step("B", interventions=(Intervention.FORCE,), lock=("x",), title="Fit")
    assert done(edited, SetStep("B", Step("B"))) == LINE
    assert "no step 'sel'" in reason(BRANCHED, SetStep("sel", Step("sel")))
    named = done(LINE, SetRecipe((Intervention.SKIP,), "actions.a.done", "Axle"))
    assert (named.interventions, named.verdict, named.title) == ((Intervention.SKIP,), "actions.a.done", "Axle")
    assert done(named, RenameAction("a", "fit")).verdict == "actions.fit.done"
    assert done(named, SetRecipe()) == LINE
    assert [step.name for step in done(LINE, SetInitial("C")).steps if step.initial] == ["C"]


def test_transitions_are_added_changed_and_removed() -> None:
    jump = done(LINE, AddTransition(Transition("C", "A", "actions.c.failed", -1)))
    assert (("C",), ("A",), ("actions.c.failed",)) in ways(jump)
    changed = done(jump, SetTransition(2, Transition("C", "B", "actions.c.timed_out", 4)))
    assert (("C",), ("B",), ("actions.c.timed_out",)) in ways(changed)
    assert done(changed, RemoveTransition(2)) == LINE
    assert "no transition 9" in reason(LINE, RemoveTransition(9))


def test_actions_are_added_moved_copied_and_removed() -> None:
    new = msgspec.structs.replace(LINE.actions[0], name="photo", step="A")
    more = done(LINE, AddAction(new))
    assert [own.name for own in more.actions] == ["a", "photo", "b", "c"]
    moved = done(more, SetAction(1, msgspec.structs.replace(new, step="C")))
    assert moved.actions[1].step == "C"
    copied = done(moved, CopyAction(0, "B", "a2"))
    assert (copied.actions[-1].name, copied.actions[-1].step) == ("a2", "B")
    assert [own.name for own in done(copied, RemoveAction(1)).actions] == ["a", "b", "c", "a2"]
    assert "no step 'Z'" in reason(LINE, CopyAction(0, "Z", "a"))
    assert "no action 8" in reason(LINE, RemoveAction(8))
