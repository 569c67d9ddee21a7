"""Edits of the structure of a chart: steps, branches and paths are inserted, wrapped, moved and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from edge.features.recipes.changes import (
    AddAlternative,
    AddBranch,
    AddNextTo,
    AddPath,
    AddWay,
    InsertAfter,
    InsertBefore,
    InsertOn,
    MovePath,
    RemovePath,
    Unwrap,
    Wrap,
)
from edge.features.recipes.chart_reading import (
    ALWAYS,
    EditedChart,
    ImpossibleEditError,
    require_new,
    transition_at,
)
from edge.features.recipes.way_edits import add_way
from edge.foundation.text import Text
from edge.model.recipe import Branch, BranchType, Recipe, Step, Transition

NewStep: TypeAlias = InsertAfter | InsertBefore | InsertOn | AddBranch | AddNextTo | AddAlternative | AddPath
"""The changes that bring a step along."""


def with_new_step(recipe: Recipe, change: NewStep) -> Recipe:
    """Return the recipe with a new step, which stands in the chart, in a new path or in a new branch."""
    match change:
        case InsertAfter():
            require_new(recipe, change.name)
            return _insert_after(EditedChart(recipe), change)
        case InsertBefore():
            require_new(recipe, change.name)
            return _insert_before(EditedChart(recipe), change)
        case InsertOn():
            require_new(recipe, change.name)
            return _insert_on(EditedChart(recipe), change)
        case AddBranch():
            require_new(recipe, change.name, change.step)
            return _add_branch(recipe, change)
        case AddNextTo():
            require_new(recipe, change.name, change.step)
            return _add_next_to(EditedChart(recipe), change)
        case AddAlternative():
            require_new(recipe, change.step)
            return _add_alternative(EditedChart(recipe), change)
        case AddPath():
            require_new(recipe, change.step)
            return _add_path(EditedChart(recipe), change)
        case _:
            assert_never(change)


def _in_paths(recipe: Recipe, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> tuple[Branch, ...]:
    """Return the branches with each path changed."""
    return tuple(replace(branch, branches=tuple(map(change, branch.branches))) for branch in recipe.branches)


def _with_step(recipe: Recipe, name: str, before: str) -> tuple[Step, ...]:
    """Return the steps with a new one, behind the step `before` where that is one."""
    steps = list(recipe.steps)
    names = [step.name for step in steps]
    steps.insert(names.index(before) + 1 if before in names else len(steps), Step(name))
    return tuple(steps)


def _insert_after(chart: EditedChart, change: InsertAfter) -> Recipe:
    recipe, element, name = chart.recipe, change.element, change.name
    chart.require(element)
    ways = chart.ways_to_next(element)
    targets = {way.target for way in ways}
    if len(targets) > 1:
        raise ImpossibleEditError(
            Text.of("several ways lead on from {element!r}: choose the transition", element=element)
        )
    # The conditions stay in front of the new step: they ask for what the element before has done.
    leading = [replace(way, target=name) for way in ways] or [Transition(element, name, ALWAYS)]
    written = [way for way in recipe.transitions if way not in ways]
    written += [*leading, *(Transition(name, target, ALWAYS) for target in targets)]
    return replace(
        recipe,
        steps=_with_step(recipe, name, element),
        transitions=tuple(written),
        branches=_in_paths(recipe, lambda path: _spliced(path, element, (element, name))),
    )


def _insert_before(chart: EditedChart, change: InsertBefore) -> Recipe:
    recipe, element, name = chart.recipe, change.element, change.name
    chart.require(element)
    place, entries = chart.place(element), chart.entries(element)
    within = chart.inside((element,))
    for way in recipe.transitions:
        if way.source not in within and way.target in entries - {element}:
            raise ImpossibleEditError(
                Text.of(
                    "a transition leads into {element!r} at {head!r}: insert the step there",
                    element=element,
                    head=way.target,
                )
            )
    transitions = tuple(
        replace(way, target=name) if way.target == element and way.source != element else way
        for way in recipe.transitions
    )
    if place is None:
        transitions += (Transition(name, element, ALWAYS),)
    steps = _with_step(recipe, name, "")
    if (step := chart.steps.get(element)) and step.initial:
        steps = with_initial(steps, name)
    return replace(
        recipe,
        steps=steps,
        transitions=transitions,
        branches=_in_paths(recipe, lambda path: _spliced(path, element, (name, element))),
    )


def _insert_on(chart: EditedChart, change: InsertOn) -> Recipe:
    recipe, name = chart.recipe, change.name
    way = transition_at(recipe, change.transition)
    following = chart.next_in_path(way.source)
    heads = [path[0] for path in chart.branches[way.source].branches] if way.source in chart.branches else []
    if way.target in heads:
        return _insert_before(chart, InsertBefore(way.target, name))
    is_next = following is not None and way.target in chart.entries(following)
    is_into_itself = bool(heads) and way.target in chart.inside((way.source,))
    if is_into_itself or not (is_next or chart.place(way.source) is None):
        raise ImpossibleEditError(Text.of("this transition has no place for a step: insert it before or after one"))
    branches = (
        _in_paths(recipe, lambda path: _spliced(path, way.source, (way.source, name))) if is_next else recipe.branches
    )
    transitions = list(recipe.transitions)
    transitions[change.transition] = replace(way, target=name)
    transitions.append(Transition(name, way.target, ALWAYS))
    return replace(
        recipe, steps=_with_step(recipe, name, way.source), transitions=tuple(transitions), branches=branches
    )


def _spliced(path: tuple[str, ...], element: str, by: Sequence[str]) -> tuple[str, ...]:
    """Return a path with an element replaced."""
    if element not in path:
        return path
    at = path.index(element)
    return (*path[:at], *by, *path[at + 1 :])


def _add_branch(recipe: Recipe, change: AddBranch) -> Recipe:
    chart = EditedChart(recipe)
    between = chart.run(change.after, change.until)[1:-1]
    if not between:
        raise ImpossibleEditError(
            Text.of(
                "nothing stands between {after!r} and {until!r}: insert a step first",
                after=change.after,
                until=change.until,
            )
        )
    next_to = AddNextTo(between[0], between[-1], change.type, change.name, change.step, change.condition)
    return _add_next_to(chart, next_to)


def _add_next_to(chart: EditedChart, change: AddNextTo) -> Recipe:
    wrapped = wrap(chart, Wrap(change.first, change.last, change.type, change.name))
    return _add_path(EditedChart(wrapped), AddPath(change.name, change.step, change.condition))


def _add_alternative(chart: EditedChart, change: AddAlternative) -> Recipe:
    recipe, after, step = chart.recipe, change.after, change.step
    chart.require(after, *([change.to] if change.to else []))
    with_step = EditedChart(replace(recipe, steps=_with_step(recipe, step, after)))
    led = add_way(with_step, AddWay(after, step, change.condition))
    onward = (Transition(step, change.to, ALWAYS),) if change.to else ()
    return replace(led, transitions=(*led.transitions, *onward))


def wrap(chart: EditedChart, change: Wrap) -> Recipe:
    """Return the recipe with a run of elements as the only path of a new branch."""
    recipe, name = chart.recipe, change.name
    require_new(recipe, name)
    run = chart.run(change.first, change.last)
    within = chart.inside(run)
    transitions = []
    for way in recipe.transitions:
        source, target = way.source, way.target
        if source not in within and target == run[0]:
            target = name
        if source == run[-1] and target not in within:
            source = name
        transitions.append(replace(way, source=source, target=target))
    outer = _in_paths(recipe, lambda path: _spliced(tuple(e for e in path if e not in run[1:]), run[0], (name,)))
    return replace(recipe, transitions=tuple(transitions), branches=(*outer, Branch(name, change.type, (run,))))


def unwrap(chart: EditedChart, change: Unwrap) -> Recipe:
    """Return the recipe with a branch replaced by its only path; what chose the path joins what leads to it."""
    recipe, branch = chart.recipe, chart.branch(change.branch)
    if len(branch.branches) != 1:
        raise ImpossibleEditError(
            Text.of("branch {name!r} has several paths: remove the others first", name=branch.name)
        )
    (path,) = branch.branches
    entries = [way for way in recipe.transitions if way.source == branch.name and way.target in chart.entries(path[0])]
    if len(entries) > 1:
        raise ImpossibleEditError(Text.of("several transitions choose the path of {name!r}", name=branch.name))
    chosen = entries[0].condition if entries else ALWAYS
    head = entries[0].target if entries else path[0]
    transitions = []
    for way in recipe.transitions:
        if way in entries:
            continue
        source = path[-1] if way.source == branch.name else way.source
        led = replace(way, source=source)
        if way.target == branch.name:
            led = replace(led, target=head, condition=_both(way.condition, chosen))
        transitions.append(led)
    place = chart.place(branch.name)
    is_led_to = any(way.target == branch.name for way in recipe.transitions)
    if place and not is_led_to and chosen != ALWAYS:
        before = place.elements[place.index - 1] if place.index else place.branch.name
        transitions.append(Transition(before, head, chosen))
    unwrapped = replace(
        recipe,
        transitions=tuple(transitions),
        branches=tuple(other for other in recipe.branches if other.name != branch.name),
    )
    unwrapped = replace(unwrapped, branches=_in_paths(unwrapped, lambda outer: _spliced(outer, branch.name, path)))
    return _locked(unwrapped, path, branch)


def _both(condition: str, other: str) -> str:
    """Return the condition that both are true."""
    if ALWAYS in {condition, other}:
        return condition if other == ALWAYS else other
    return f"({condition}) and ({other})"


def _locked(recipe: Recipe, names: Sequence[str], by: Branch) -> Recipe:
    """Return the recipe with the locks of a branch at these elements."""
    if not by.lock:
        return recipe

    def locked(part: Step | Branch) -> Step | Branch:
        if part.name not in names:
            return part
        timeout = part.lock_timeout_seconds or by.lock_timeout_seconds
        return replace(part, lock=tuple(dict.fromkeys((*part.lock, *by.lock))), lock_timeout_seconds=timeout)

    return replace(recipe, steps=tuple(map(locked, recipe.steps)), branches=tuple(map(locked, recipe.branches)))


def _add_path(chart: EditedChart, change: AddPath) -> Recipe:
    recipe, branch = chart.recipe, chart.branch(change.branch)
    widened = replace(branch, branches=(*branch.branches, (change.step,)))
    steps = _with_step(recipe, change.step, "")
    widened_recipe = replace(recipe, steps=steps, branches=replaced(recipe.branches, widened))
    if branch.type is not BranchType.SELECTION:
        return widened_recipe
    return add_way(EditedChart(widened_recipe), AddWay(branch.name, change.step, change.condition))


def replaced(branches: Iterable[Branch], branch: Branch) -> tuple[Branch, ...]:
    """Return the branches with the one of that name replaced."""
    return tuple(branch if other.name == branch.name else other for other in branches)


def move_path(chart: EditedChart, change: MovePath) -> Recipe:
    """Return the recipe with a path at another place: open paths are tried in their order."""
    branch = chart.branch(change.branch)
    _require_path(branch, change.path)
    _require_path(branch, change.to)
    paths = list(branch.branches)
    paths.insert(change.to, paths.pop(change.path))
    moved = replace(branch, branches=tuple(paths))
    return replace(chart.recipe, branches=replaced(chart.recipe.branches, moved))


def _require_path(branch: Branch, number: int) -> None:
    if not 0 <= number < len(branch.branches):
        raise ImpossibleEditError(Text.of("branch {name!r} has no path {number}", name=branch.name, number=number))


def remove_path(chart: EditedChart, change: RemovePath) -> Recipe:
    """Return the recipe without a path and everything in it."""
    recipe, branch = chart.recipe, chart.branch(change.branch)
    _require_path(branch, change.path)
    if len(branch.branches) == 1:
        raise ImpossibleEditError(
            Text.of("it is the only path of branch {name!r}: unwrap the branch, and remove the steps", name=branch.name)
        )
    gone = chart.inside(branch.branches[change.path])
    narrowed = replace(
        branch, branches=tuple(path for number, path in enumerate(branch.branches) if number != change.path)
    )
    return replace(
        _without(recipe, gone),
        branches=tuple(other for other in replaced(recipe.branches, narrowed) if other.name not in gone),
    )


def _without(recipe: Recipe, gone: frozenset[str]) -> Recipe:
    """Return the recipe without these steps, their actions and the transitions at these elements."""
    if any(step.initial and step.name in gone for step in recipe.steps):
        raise ImpossibleEditError(Text.of("the initial step is among them: make another step the initial one first"))
    return replace(
        recipe,
        steps=tuple(step for step in recipe.steps if step.name not in gone),
        actions=tuple(action for action in recipe.actions if action.step not in gone),
        transitions=tuple(way for way in recipe.transitions if not {way.source, way.target} & gone),
    )


def remove_step(chart: EditedChart, name: str) -> Recipe:
    """Return the recipe without a step; what leads to it leads on to what came after it."""
    recipe = chart.recipe
    chart.step(name)
    place = chart.place(name)
    if place and len(place.elements) == 1:
        raise ImpossibleEditError(Text.of("{name!r} is the only step of its path: remove the path", name=name))
    if len(recipe.steps) == 1:
        raise ImpossibleEditError(Text.of("a recipe needs a step"))
    on = [way for way in chart.ways_to_next(name) if way.target != name]
    into = [way for way in recipe.transitions if way.target == name and way.source != name]
    if place and place.index and len(on) > 1:
        # The way in may be implied; several conditions lead on, and none of them may be lost.
        before = place.elements[place.index - 1]
        into = into if any(way.source == before for way in into) else [Transition(before, name, ALWAYS), *into]
    joined = [
        Transition(
            way.source, out.target, way.condition if len(on) == 1 else _both(way.condition, out.condition), way.priority
        )
        for way in into
        for out in on
        if way.source != out.target
    ]
    recipe = _handed_over(recipe, name, on, chart)
    kept = _without(recipe, frozenset({name}))
    return replace(
        kept,
        transitions=(*kept.transitions, *joined),
        branches=_in_paths(kept, lambda path: tuple(element for element in path if element != name)),
    )


def _handed_over(recipe: Recipe, name: str, on: Sequence[Transition], chart: EditedChart) -> Recipe:
    """Return the recipe with the step after `name` as the initial one, where `name` was it."""
    if not chart.steps[name].initial:
        return recipe
    targets = {way.target for way in on}
    if len(targets) != 1 or not targets <= chart.steps.keys():
        raise ImpossibleEditError(
            Text.of("{name!r} is the initial step: make another step the initial one first", name=name)
        )
    return replace(recipe, steps=with_initial(recipe.steps, targets.pop()))


def with_initial(steps: Iterable[Step], name: str) -> tuple[Step, ...]:
    """Return the steps with one of them as the initial one."""
    return tuple(replace(step, initial=step.name == name) for step in steps)
