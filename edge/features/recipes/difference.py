"""The differences of two recipes, element by element: what an engineer reads before a release."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from edge.features.recipes.chart_reading import EditedChart
from edge.model.recipe import Action, Branch, Recipe, Step, Transition


class DifferenceKind(StrEnum):
    """What became of an element or of one of its members."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class RecipeDifference(Struct, frozen=True, kw_only=True):
    """One difference. `element` is `recipe`, `step`, `branch`, `transition` or `action`; `name` says which one.

    The member `order` of a transition is its place among the ways that are tried together, counted from 1; where it
    changes, its priority is not listed again.

    Of a changed element each member has its own difference with its values `before` and `after`; null is a member that
    is not written.
    """

    kind: DifferenceKind
    element: str
    name: str
    member: str = ""
    before: Any = None
    after: Any = None


_ORDER: Final = "order"
_IDENTITY: Final = frozenset({"source", "target", "step", "name"})


def differences(old: Recipe, new: Recipe) -> tuple[RecipeDifference, ...]:
    """Return the differences in the order of the newer recipe, removed elements of a kind last.

    Steps and branches are the same by name, transitions by their ends, actions by name and step; of several equal ones
    by their order. A renamed element is removed and added.
    """
    return (
        *_of_members("recipe", "", _own_members(old), _own_members(new)),
        *_of_elements("step", _named(old.steps), _named(new.steps)),
        *_of_elements("branch", _named(old.branches), _named(new.branches)),
        *_of_elements("transition", _ordered(old), _ordered(new)),
        *_of_elements("action", _named(old.actions), _named(new.actions)),
    )


def _own_members(recipe: Recipe) -> dict[str, Any]:
    written = {"interventions": recipe.interventions or UNSET, "verdict": recipe.verdict}
    return _members({**written, "title": recipe.title, "description": recipe.description})


def _members(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not UNSET}


def _named(elements: Sequence[Step | Branch | Transition | Action]) -> dict[str, dict[str, Any]]:
    """Return the written members of elements by what identifies them, in their order."""
    counts, named = Counter[str](), dict[str, dict[str, Any]]()
    for element in elements:
        name = element_name(element)
        counts[name] += 1
        members = msgspec.json.decode(msgspec.json.encode(element))
        named[name if counts[name] == 1 else f"{name} ({counts[name]})"] = members
    return named


def _ordered(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Return the written members of transitions, with their order among those that are tried together."""
    chart, groups = EditedChart(recipe), dict[tuple[str, bool], list[int]]()
    for number, way in enumerate(recipe.transitions):
        groups.setdefault((way.source, chart.is_entry(way)), []).append(number)
    orders = {
        number: order
        for group in groups.values()
        for order, number in enumerate(sorted(group, key=lambda number: recipe.transitions[number].priority), 1)
    }
    named = _named(recipe.transitions)
    return {name: {**members, _ORDER: orders[number]} for number, (name, members) in enumerate(named.items())}


def names_of(elements: Sequence[Step | Branch | Transition | Action]) -> list[str]:
    """Return the names of elements in differences, in their order."""
    return list(_named(elements))


def element_name(element: Step | Branch | Transition | Action) -> str:
    """Return the name of an element in differences."""
    match element:
        case Transition(source=source, target=target):
            return f"{source} → {target}"
        case Action(name=name, step=step):
            return f"{name} · {step}"
        case _:
            return element.name


def _of_elements(
    element: str, old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> Iterator[RecipeDifference]:
    for name, members in new.items():
        if name in old:
            yield from _of_members(element, name, old[name], members)
        else:
            yield RecipeDifference(kind=DifferenceKind.ADDED, element=element, name=name, after=members)
    for name, members in old.items():
        if name not in new:
            yield RecipeDifference(kind=DifferenceKind.REMOVED, element=element, name=name, before=members)


def _of_members(element: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[RecipeDifference]:
    has_other_order = old.get(_ORDER) != new.get(_ORDER)
    for member in dict.fromkeys((*new, *old)):
        before, after = old.get(member), new.get(member)
        if member == "priority" and has_other_order:
            continue
        # Equal values may differ in their type: 1, 1.0 and true.
        if member not in _IDENTITY and msgspec.json.encode(before) != msgspec.json.encode(after):
            yield RecipeDifference(
                kind=DifferenceKind.CHANGED, element=element, name=name, member=member, before=before, after=after
            )
