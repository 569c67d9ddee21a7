"""Edits of recipes: pure functions from a recipe and a change to the recipe afterwards, or to the reason against it.

An edit keeps what can be read: names are unique, references lead somewhere, paths are not empty, and no transition
jumps into or out of a simultaneous path. Faults of meaning, such as a condition that names a removed action, are left
for `edge check`, which shows them at their place. Undo is the list of former recipes.

Example: `edit(recipe, InsertAfter("Tighten", "Verify"))`.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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
from edge.features.recipes.chart_reading import EditedChart, ImpossibleEditError
from edge.features.recipes.property_edits import change_action, change_transition, rename, set_element
from edge.features.recipes.structure_edits import (
    move_path,
    remove_path,
    remove_step,
    unwrap,
    with_new_step,
    wrap,
)
from edge.features.recipes.way_edits import add_way, move_transition
from edge.foundation.text import Text
from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.check import safety_faults, shape_faults
from edge.sfc.structure import Structure


class EditRefused(Struct, frozen=True):
    """A change that is not possible, and why; the recipe stays as it is."""

    reason: Text


def edit(recipe: Recipe, change: Change) -> Recipe | EditRefused:
    """Return the recipe after a change, or why the change is refused; total, and without I/O."""
    try:
        edited = _edited(recipe, change)
    except ImpossibleEditError as impossible:
        return EditRefused(impossible.reason)
    faults = _unreadable(edited)
    if faults and not _unreadable(recipe):
        return EditRefused(Text.of("the recipe could not be read afterwards: {fault}", fault=faults[0]))
    return edited


def _unreadable(recipe: Recipe) -> list[Text]:
    """Return the faults with which a recipe has no clear meaning, or activity would be lost or doubled."""
    read, form = parse_recipe(msgspec.json.decode(msgspec.json.encode(recipe)))
    if read is None or form:
        return list(form)
    return shape_faults(recipe) or list(safety_faults(Structure(recipe)))


def _edited(recipe: Recipe, change: Change) -> Recipe:
    match change:
        case InsertAfter() | InsertBefore() | InsertOn() | AddBranch() | AddNextTo() | AddAlternative() | AddPath():
            return with_new_step(recipe, change)
        case Wrap():
            return wrap(EditedChart(recipe), change)
        case Unwrap():
            return unwrap(EditedChart(recipe), change)
        case MovePath():
            return move_path(EditedChart(recipe), change)
        case RemovePath():
            return remove_path(EditedChart(recipe), change)
        case RemoveStep():
            return remove_step(EditedChart(recipe), change.name)
        case RenameElement() | RenameAction():
            return rename(recipe, change)
        case SetInitial() | SetStep() | SetBranch():
            return set_element(recipe, change)
        case AddTransition() | SetTransition() | RemoveTransition():
            return change_transition(recipe, change)
        case AddWay():
            return add_way(EditedChart(recipe), change)
        case MoveTransition():
            return move_transition(EditedChart(recipe), change)
        case AddAction() | SetAction() | CopyAction() | RemoveAction():
            return change_action(recipe, change)
        case SetRecipe():
            return replace(
                recipe,
                interventions=change.interventions,
                verdict=change.verdict,
                title=change.title,
                description=change.description,
            )
        case _:
            assert_never(change)
