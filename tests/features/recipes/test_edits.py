"""Any edit of any recipe: total, readable, reversible."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from edge.features.recipes.changes import (
    AddAction,
    AddAlternative,
    AddBranch,
    AddNextTo,
    AddPath,
    AddTransition,
    AddWay,
    Change,
    CopyAction,
    InsertAfter,
    InsertBefore,
    InsertOn,
    MovePath,
    MoveTransition,
    RemoveAction,
    RemovePath,
    RemoveStep,
    RemoveTransition,
    RenameAction,
    RenameElement,
    SetAction,
    SetBranch,
    SetInitial,
    SetRecipe,
    SetStep,
    SetTransition,
    Unwrap,
    Wrap,
)
from edge.features.recipes.edits import EditRefused, edit
from edge.model.recipe import BranchType, Intervention, Recipe, Step, Transition
from edge.sfc.check import safety_faults, shape_faults
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.structure import Structure
from tests.examples import examples
from tests.features.recipes.editing import done, read, ways, written
from tests.sfc.charts import recipes


@st.composite
def changes(draw: st.DrawFn, recipe: Recipe) -> Change:
    """Draw a change of any kind; its names exist, mostly."""
    elements = [*(step.name for step in recipe.steps), *(own.name for own in recipe.branches), "nowhere"]
    branches = [*(own.name for own in recipe.branches), "nowhere"]
    element, number = st.sampled_from(elements), st.integers(0, 5)
    new = st.sampled_from(["New", "Step 2", "", elements[0]])
    condition, kind = st.sampled_from(["always", "x > 1", "steps.S0.X"]), st.sampled_from(BranchType)
    actions = st.sampled_from(recipe.actions) if recipe.actions else st.nothing()
    name = st.sampled_from([*(own.name for own in recipe.actions), "nothing"])
    written_ways = st.builds(Transition, element, element, condition, number)
    kinds: list[st.SearchStrategy[Change]] = [
        st.builds(InsertAfter, element, new),
        st.builds(InsertBefore, element, new),
        st.builds(InsertOn, number, new),
        st.builds(AddBranch, element, element, kind, new, st.just("Other"), condition),
        st.builds(AddNextTo, element, element, kind, new, st.just("Other"), condition),
        st.builds(AddAlternative, element, new, condition, st.one_of(st.just(""), element)),
        st.builds(Wrap, element, element, kind, new),
        st.builds(Unwrap, st.sampled_from(branches)),
        st.builds(AddPath, st.sampled_from(branches), new, condition),
        st.builds(MovePath, st.sampled_from(branches), number, number),
        st.builds(RemovePath, st.sampled_from(branches), number),
        st.builds(RemoveStep, element),
        st.builds(RenameElement, element, new),
        st.builds(RenameAction, name, new),
        st.builds(SetInitial, element),
        st.builds(SetStep, element, st.builds(Step, element, lock=st.sampled_from([(), ("wrench",)]))),
        st.builds(SetBranch, st.sampled_from(branches), st.sampled_from([(), ("wrench",)])),
        st.builds(AddTransition, written_ways),
        st.builds(AddWay, element, element, condition, number),
        st.builds(MoveTransition, number, st.integers(1, 4)),
        st.builds(SetTransition, number, written_ways),
        st.builds(RemoveTransition, number),
        st.builds(AddAction, actions),
        st.builds(SetAction, number, actions),
        st.builds(CopyAction, number, element, new),
        st.builds(RemoveAction, number),
        st.builds(SetRecipe, st.sampled_from([(), (Intervention.RETRY,)]), st.sampled_from([UNSET, "steps.S0.X"])),
    ]
    return draw(st.one_of(kinds))


MANY = settings(max_examples=examples(300), deadline=None)


@MANY
@given(st.data(), recipes())
def test_edited_recipe_can_always_be_read(data: st.DataObject, drawn: dict[str, Any]) -> None:
    recipe = read(drawn)
    for _ in range(data.draw(st.integers(1, 6))):
        edited = edit(recipe, data.draw(changes(recipe)))
        if isinstance(edited, EditRefused):
            assert str(edited.reason)
            continue
        recipe = read(written(edited))
        assert recipe == edited
        assert not shape_faults(recipe)
        assert not list(safety_faults(Structure(recipe)))


@MANY
@given(st.data(), recipes())
def test_renaming_back_restores_the_recipe(data: st.DataObject, drawn: dict[str, Any]) -> None:
    recipe = read(drawn)
    names = [*(step.name for step in recipe.steps), *(own.name for own in recipe.branches)]
    name, to = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(["New", "Step 2", 'a "b" \\']))
    renamed = done(recipe, RenameElement(name, to))
    assert done(renamed, RenameElement(to, name)) == recipe
    assert not isinstance(compile_recipe(written(renamed)), RejectedRecipe)
    if recipe.actions:
        own = data.draw(st.sampled_from(recipe.actions)).name
        assert done(done(recipe, RenameAction(own, to)), RenameAction(to, own)) == recipe


@MANY
@given(st.data(), recipes())
def test_removing_an_inserted_step_restores_the_meaning(data: st.DataObject, drawn: dict[str, Any]) -> None:
    recipe = read(drawn)
    element = data.draw(
        st.sampled_from([*(step.name for step in recipe.steps), *(own.name for own in recipe.branches)])
    )
    kinds: list[Change] = [InsertAfter(element, "New"), InsertBefore(element, "New"), InsertOn(0, "New")]
    edited = edit(recipe, data.draw(st.sampled_from(kinds)))
    if isinstance(edited, Recipe):
        assert ways(done(edited, RemoveStep("New"))) == ways(recipe)


@MANY
@given(st.data(), recipes())
def test_unwrapping_a_wrapped_run_restores_the_meaning(data: st.DataObject, drawn: dict[str, Any]) -> None:
    recipe = read(drawn)
    elements = st.sampled_from([*(step.name for step in recipe.steps), *(own.name for own in recipe.branches)])
    first = data.draw(elements)
    wrapped = edit(recipe, Wrap(first, data.draw(st.one_of(st.just(first), elements)), BranchType.SELECTION, "new"))
    if isinstance(wrapped, Recipe):
        assert ways(wrapped) == ways(recipe)
        assert ways(done(wrapped, Unwrap("new"))) == ways(recipe)
