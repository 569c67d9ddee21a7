"""What another person has changed of an element while its author was still writing: a change must not take it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edge.features.recipes.changes import (
    Change,
    RenameAction,
    RenameElement,
    SetAction,
    SetBranch,
    SetRecipe,
    SetStep,
    SetTransition,
)
from edge.features.recipes.chart_reading import EditedChart, ImpossibleEditError
from edge.features.recipes.difference import DifferenceKind, RecipeDifference, element_name
from edge.model.recipe import Recipe


def changed_meanwhile(recipe: Recipe, change: Change, seen: Change) -> tuple[RecipeDifference, ...]:
    """Return the members that a change sets and that another person has set otherwise.

    `seen` is the change that would leave the element as its author saw it.
    """
    if type(change) is not type(seen):
        return ()
    try:
        element, name, now = _now(recipe, change, seen)
    except ImpossibleEditError:
        return ()
    before, wanted = _flat(seen), _flat(change)
    return tuple(
        RecipeDifference(
            kind=DifferenceKind.CHANGED,
            element=element,
            name=name,
            member=member,
            before=before.get(member),
            after=now.get(member),
        )
        for member in dict.fromkeys((*wanted, *now, *before))
        if not _equal(wanted.get(member), now.get(member))
        and not _equal(now.get(member), before.get(member))
        and not _equal(wanted.get(member), before.get(member))
    )


def _now(recipe: Recipe, change: Change, seen: Change) -> tuple[str, str, Mapping[str, Any]]:
    """Return the kind and name of the element that a change sets, and its members now."""
    chart = EditedChart(recipe)
    match change, seen:
        case SetStep(name=name), _:
            return "step", name, _members(chart.step(name))
        case SetBranch(name=name), _:
            branch = chart.branch(name)
            return "branch", name, _flat(SetBranch(name, branch.lock, branch.lock_timeout_seconds))
        case SetTransition(number=number), _ if 0 <= number < len(recipe.transitions):
            way = recipe.transitions[number]
            return "transition", element_name(way), _members(way)
        case SetAction(number=number), _ if 0 <= number < len(recipe.actions):
            action = recipe.actions[number]
            return "action", element_name(action), _members(action)
        case SetRecipe(), _:
            own = SetRecipe(recipe.interventions, recipe.verdict, recipe.title, recipe.description)
            return "recipe", "", _flat(own)
        case RenameAction(name=name), RenameAction(name=before):
            return "action", before, {"to": name}
        case RenameElement(name=name), RenameElement(name=before):
            return "step", before, {"to": name}
        case _:
            return "", "", {}


def _flat(change: Change) -> dict[str, Any]:
    """Return the members that a change sets; those of an element as its own, without what finds the element."""
    match change:
        case SetStep(step=element) | SetAction(action=element) | SetTransition(transition=element):
            return _members(element)
        case RenameAction(to=to) | RenameElement(to=to):
            return {"to": to}
        case _:
            return {name: value for name, value in _members(change).items() if name not in {"change", "name"}}


def _members(element: msgspec.Struct) -> dict[str, Any]:
    """Return the written members; those of parameters and of texts by language each as one of its own."""
    found = msgspec.json.decode(msgspec.json.encode(element))
    return dict(_spread(found))


def _spread(members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", item) for part, item in value.items())
        elif name != "initial":
            yield name, value


def _equal(one: Any, other: Any) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)
