"""What the tests of edits share: recipes, and their meaning as plain transitions."""

from typing import Any

import msgspec

from edge.features.recipes.changes import (
    Change,
)
from edge.features.recipes.edits import EditRefused, edit
from edge.model.recipe import Recipe, parse_recipe
from edge.sfc.structure import Structure
from tests.sfc.recipes import action, branch, chain, transition
from tests.sfc.recipes import recipe as data_of


def read(data: dict[str, Any]) -> Recipe:
    recipe, faults = parse_recipe(data)
    assert recipe is not None, faults
    assert not faults, faults
    return recipe


def written(recipe: Recipe) -> Any:
    return msgspec.json.decode(msgspec.json.encode(recipe))


def done(recipe: Recipe, change: Change) -> Recipe:
    edited = edit(recipe, change)
    assert isinstance(edited, Recipe), edited
    return edited


def reason(recipe: Recipe, change: Change) -> str:
    refused = edit(recipe, change)
    assert isinstance(refused, EditRefused), refused
    return str(refused.reason)


def ways(recipe: Recipe) -> set[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Return what the chart means: each plain transition with its conditions, without those that are always true."""
    return {
        (arc.sources, arc.targets, tuple(text for text in arc.conditions if text != "always"))
        for arc in Structure(recipe).arcs
    }


LINE = read(chain("A B C", action("a", "A"), action("b", "B"), action("c", "C")))
BRANCHED = read(
    data_of(
        "I A B C End",
        [transition("I", "sel"), transition("sel", "A", "quick"), transition("sel", "End")],
        [action("a", "A"), action("b", "B")],
        branch("sel", "selection", "A", "B C"),
    )
)
