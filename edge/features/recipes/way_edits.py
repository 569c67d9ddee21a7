"""Edits of the order in which the ways on from an element are tried: people count it from 1, as the chart does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from edge.expression.syntax import ExpressionSyntaxError, Literal, parse
from edge.features.recipes.changes import AddWay, MoveTransition
from edge.features.recipes.chart_reading import ALWAYS, EditedChart, transition_at
from edge.model.recipe import Recipe, Transition

_Order: TypeAlias = Sequence[int]
"""The numbers of transitions, in the order in which they are tried."""


def add_way(chart: EditedChart, change: AddWay) -> Recipe:
    """Return the recipe with one more way on, where it is tried: before a way that is always true."""
    chart.require(change.source, change.target)
    way = Transition(change.source, change.target, change.condition)
    # An implied way is written now: next to a written one it would not be taken.
    is_entry = chart.is_entry(way)
    implied = [] if is_entry else [own for own in chart.ways_on(way.source) if own not in chart.recipe.transitions]
    recipe = replace(chart.recipe, transitions=(*chart.recipe.transitions, *implied, way))
    number = len(recipe.transitions) - 1
    order = [other for other in _tried_together(EditedChart(recipe), way) if other != number]
    place = change.place - 1 if change.place else _place_of(recipe, order, change.condition)
    return _tried_in(recipe, [*order[:place], number, *order[place:]])


def _place_of(recipe: Recipe, order: _Order, condition: str) -> int:
    """Return the place of a new way: before the first that is always true, unless it is so itself."""
    if is_always(condition):
        return len(order)
    hiding = (place for place, number in enumerate(order) if is_always(recipe.transitions[number].condition))
    return next(hiding, len(order))


def move_transition(chart: EditedChart, change: MoveTransition) -> Recipe:
    """Return the recipe with a transition at another place in the order in which it and the others are tried."""
    order = list(_tried_together(chart, transition_at(chart.recipe, change.number)))
    order.remove(change.number)
    order.insert(change.place - 1, change.number)
    return _tried_in(chart.recipe, order)


def _tried_together(chart: EditedChart, way: Transition) -> _Order:
    """Return the written transitions that are tried together with one, in their order."""
    is_entry = chart.is_entry(way)
    numbers = [
        number
        for number, other in enumerate(chart.recipe.transitions)
        if other.source == way.source and chart.is_entry(other) == is_entry
    ]
    return sorted(numbers, key=lambda number: chart.recipe.transitions[number].priority)


def _tried_in(recipe: Recipe, order: _Order) -> Recipe:
    """Return the recipe with priorities from 1 in this order; a single way keeps its own."""
    if len(order) < 2:  # noqa: PLR2004 - two make an order
        return recipe
    ways = list(recipe.transitions)
    for priority, number in enumerate(order, 1):
        ways[number] = replace(ways[number], priority=priority)
    return replace(recipe, transitions=tuple(ways))


def is_always(condition: str) -> bool:
    """Return whether a condition is the constant true."""
    if condition == ALWAYS:
        return True
    try:
        tree = parse(condition)
    except ExpressionSyntaxError:
        return False
    return isinstance(tree, Literal) and tree.value is True
