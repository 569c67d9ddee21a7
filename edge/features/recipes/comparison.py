"""Draws two recipes as one chart: the newer one, with what was added, removed and changed marked by colour and sign."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from edge.drawing.reading import read_chart
from edge.drawing.shapes import ChangeMark, TargetKind
from edge.drawing.sheet import draw
from edge.drawing.svg import changes_svg
from edge.features.recipes.difference import DifferenceKind, differences, names_of
from edge.model.recipe import Action, Branch, Recipe, Transition
from edge.sfc.check import shape_faults

_MARKS: Final = {
    DifferenceKind.ADDED: ChangeMark.ADDED,
    DifferenceKind.REMOVED: ChangeMark.REMOVED,
    DifferenceKind.CHANGED: ChangeMark.CHANGED,
}
_Changes: TypeAlias = Mapping[tuple[str, str], ChangeMark]
"""What became of elements, by their list and name."""


def comparison_svg(old: Recipe, new: Recipe, language: str) -> str:
    """Return the chart of both recipes as SVG; empty where not even the newer one can be drawn.

    Where removed elements have no place in the newer chart it shows the newer one alone: the list has the rest.
    """
    changes: _Changes = {(item.element, item.name): _MARKS[item.kind] for item in differences(old, new)}
    return _drawn(_united(old, new), new, changes, language) or _drawn(new, new, changes, language)


def _drawn(recipe: Recipe, new: Recipe, changes: _Changes, language: str) -> str:
    """Return a recipe that begins with the elements of the newer one; empty where it has no clear shape."""
    if sum(step.initial for step in recipe.steps) != 1 or shape_faults(recipe):
        return ""
    marks = {
        (TargetKind(element), name): change
        for (element, name), change in changes.items()
        if element in {TargetKind.STEP, TargetKind.BRANCH}
    }
    marks |= _numbered(TargetKind.TRANSITION, new.transitions, len(recipe.transitions), changes)
    marks |= _numbered(TargetKind.ACTION, new.actions, len(recipe.actions), changes)
    return changes_svg(draw(read_chart(recipe), "", None, language), marks)


def _numbered(
    kind: TargetKind, listed: Sequence[Transition] | Sequence[Action], count: int, changes: _Changes
) -> dict[tuple[TargetKind, str], ChangeMark]:
    """Return the marks of elements by their numbers; those behind the elements of the newer recipe were removed."""
    names = enumerate(names_of(listed))
    marks = {(kind, str(number)): change for number, name in names if (change := changes.get((kind.value, name)))}
    return marks | {(kind, str(number)): ChangeMark.REMOVED for number in range(len(listed), count)}


def _united(old: Recipe, new: Recipe) -> Recipe:
    """Return the newer recipe with the removed elements of the older one behind its own."""
    names = {step.name for step in new.steps} | {branch.name for branch in new.branches}
    steps = [replace(step, initial=False) for step in old.steps if step.name not in names]
    lost = {step.name for step in steps}
    branches = _lost_branches(old, names, lost)
    lost |= {branch.name for branch in branches}
    joined = names | lost
    after, of_steps = set(names_of(new.transitions)), set(names_of(new.actions))
    transitions = [
        item
        for item, name in zip(old.transitions, names_of(old.transitions), strict=True)
        if name not in after and {item.source, item.target} <= joined
    ]
    actions = [
        item
        for item, name in zip(old.actions, names_of(old.actions), strict=True)
        if name not in of_steps and item.step in joined
    ]
    return replace(
        new,
        steps=(*new.steps, *steps),
        branches=(*_with_lost_steps(old, new, lost), *branches),
        transitions=(*new.transitions, *transitions),
        actions=(*new.actions, *actions),
    )


def _lost_branches(old: Recipe, names: set[str], lost: set[str]) -> list[Branch]:
    """Return the removed branches whose steps were all removed with them, the inner ones first."""
    branches: list[Branch] = []
    gone = set(lost)
    while whole := [
        branch
        for branch in old.branches
        if branch.name not in names | gone and all(name in gone for path in branch.branches for name in path)
    ]:
        branches += whole
        gone |= {branch.name for branch in whole}
    return branches


def _with_lost_steps(old: Recipe, new: Recipe, lost: set[str]) -> list[Branch]:
    """Return the branches of the newer recipe with the removed elements of their paths at their former places."""
    paths = {branch.name: [list(path) for path in branch.branches] for branch in new.branches}
    for branch in old.branches:
        for path in branch.branches if branch.name in paths else ():
            _insert(paths[branch.name], path, lost)
    return [replace(branch, branches=tuple(map(tuple, paths[branch.name]))) for branch in new.branches]


def _insert(paths: list[list[str]], former: Sequence[str], lost: set[str]) -> None:
    path = next((path for path in paths if not set(path).isdisjoint(former)), None)
    if path is None:
        if lost.issuperset(former):
            paths.append(list(former))
        return
    place = 0
    for name in former:
        if name in path:
            place = path.index(name) + 1
        elif name in lost:
            path.insert(place, name)
            place += 1
