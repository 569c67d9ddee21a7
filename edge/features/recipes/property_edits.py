"""Edits of what an element is: names with their references, locks, conditions, actions."""

from __future__ import annotations

from typing import assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from edge.expression.syntax import ExpressionSyntaxError, names_of, parse, text_of_path
from edge.features.recipes.changes import (
    AddAction,
    AddTransition,
    CopyAction,
    RemoveAction,
    RemoveTransition,
    RenameAction,
    RenameElement,
    SetAction,
    SetBranch,
    SetInitial,
    SetStep,
    SetTransition,
)
from edge.features.recipes.chart_reading import EditedChart, ImpossibleEditError, require_new, transition_at
from edge.features.recipes.structure_edits import replaced, with_initial
from edge.foundation.text import Text
from edge.model.recipe import Recipe, Transition


def rename(recipe: Recipe, change: RenameElement | RenameAction) -> Recipe:
    """Return the recipe with a step, branch or action renamed, and with every reference to it."""
    if change.to == change.name:
        return recipe
    match change:
        case RenameElement(name=name, to=to):
            EditedChart(recipe).require(name)
            require_new(recipe, to)
            conditions = _renamed_in_conditions(recipe, "steps", name, to)

            def new(element: str) -> str:
                return to if element == name else element

            return replace(
                recipe,
                steps=tuple(replace(step, name=new(step.name)) for step in recipe.steps),
                branches=tuple(
                    replace(
                        branch, name=new(branch.name), branches=tuple(tuple(map(new, path)) for path in branch.branches)
                    )
                    for branch in recipe.branches
                ),
                transitions=tuple(replace(way, source=new(way.source), target=new(way.target)) for way in conditions),
                actions=tuple(replace(action, step=new(action.step)) for action in recipe.actions),
                verdict=_renamed_in_verdict(recipe, "steps", name, to),
            )
        case RenameAction(name=name, to=to):
            names = {action.name for action in recipe.actions}
            if name not in names:
                raise ImpossibleEditError(Text.of("there is no action {name!r}", name=name))
            if not to or to in names:
                raise ImpossibleEditError(Text.of("an action needs a name of its own, and {name!r} is not", name=to))
            return replace(
                recipe,
                actions=tuple(replace(action, name=to) if action.name == name else action for action in recipe.actions),
                transitions=_renamed_in_conditions(recipe, "actions", name, to),
                verdict=_renamed_in_verdict(recipe, "actions", name, to),
            )
        case _:
            assert_never(change)


def _renamed_in_conditions(recipe: Recipe, kind: str, name: str, to: str) -> tuple[Transition, ...]:
    return tuple(
        replace(way, condition=renamed_in_condition(way.condition, kind, name, to)) for way in recipe.transitions
    )


def _renamed_in_verdict(recipe: Recipe, kind: str, name: str, to: str) -> str | UnsetType:
    return recipe.verdict if recipe.verdict is UNSET else renamed_in_condition(recipe.verdict, kind, name, to)


def renamed_in_condition(condition: str, kind: str, name: str, to: str) -> str:
    """Return a condition in which each `kind.name`, as in `steps.Fit.T`, has another name.

    A condition that cannot be read stays as it is: its fault is shown.
    """
    try:
        named = [node for node in names_of(parse(condition)) if node.path[:2] == (kind, name)]
    except ExpressionSyntaxError:
        return condition
    for node in sorted(named, key=lambda name: name.start, reverse=True):
        path = (kind, to, *node.path[2:])
        condition = condition[: node.start] + text_of_path(path) + condition[node.end :]
    return condition


def set_element(recipe: Recipe, change: SetInitial | SetStep | SetBranch) -> Recipe:
    """Return the recipe with another initial step, or other properties of a step or branch."""
    chart = EditedChart(recipe)
    match change:
        case SetInitial(step=name):
            return replace(recipe, steps=with_initial(recipe.steps, chart.step(name).name))
        case SetStep(name=name, step=step):
            changed = replace(step, name=name, initial=chart.step(name).initial)
            return replace(recipe, steps=tuple(changed if own.name == name else own for own in recipe.steps))
        case SetBranch():
            locked = replace(
                chart.branch(change.name), lock=change.lock, lock_timeout_seconds=change.lock_timeout_seconds
            )
            return replace(recipe, branches=replaced(recipe.branches, locked))
        case _:
            assert_never(change)


def change_transition(recipe: Recipe, change: AddTransition | SetTransition | RemoveTransition) -> Recipe:
    """Return the recipe with a transition added, changed or removed."""
    ways = list(recipe.transitions)
    match change:
        case AddTransition(transition=transition):
            ways.append(transition)
        case SetTransition(number=number, transition=transition):
            transition_at(recipe, number)
            ways[number] = transition
        case RemoveTransition(number=number):
            transition_at(recipe, number)
            del ways[number]
        case _:
            assert_never(change)
    return replace(recipe, transitions=tuple(ways))


def change_action(recipe: Recipe, change: AddAction | SetAction | CopyAction | RemoveAction) -> Recipe:
    """Return the recipe with an action added, replaced, copied or removed."""
    actions = list(recipe.actions)
    number = None if isinstance(change, AddAction) else change.number
    if number is not None and not 0 <= number < len(actions):
        raise ImpossibleEditError(Text.of("there is no action {number}", number=number))
    match change:
        case AddAction(action=action):
            steps = [own.step for own in actions]
            at = len(steps) - steps[::-1].index(action.step) if action.step in steps else len(steps)
            actions.insert(at, action)
        case SetAction(action=action):
            actions[change.number] = action
        case CopyAction(step=step, name=name):
            actions.append(replace(actions[change.number], step=step, name=name))
        case RemoveAction():
            del actions[change.number]
        case _:
            assert_never(change)
    chart = EditedChart(recipe)
    for action in actions:
        chart.step(action.step)
    return replace(recipe, actions=tuple(actions))
