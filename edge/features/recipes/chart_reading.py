"""A recipe with the questions that edits ask about it: where elements stand, and which ways lead on from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from edge.foundation.text import Text
from edge.model.recipe import Branch, BranchType, Recipe, Step, Transition

ALWAYS: Final = "always"


class ImpossibleEditError(Exception):
    """A change that is not possible; `reason` is a sentence for the engineer."""

    def __init__(self, reason: Text) -> None:
        super().__init__(str(reason))
        self.reason = reason


class PathPlace(Struct, frozen=True):
    """Where an element stands in a path of a branch."""

    branch: Branch
    path: int
    index: int

    @property
    def elements(self) -> tuple[str, ...]:
        """The elements of the path."""
        return self.branch.branches[self.path]


class EditedChart:
    """A recipe with the questions that edits ask about it."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.steps = {step.name: step for step in recipe.steps}
        self.branches = {branch.name: branch for branch in recipe.branches}
        self._places = {
            name: PathPlace(branch, path, index)
            for branch in recipe.branches
            for path, names in enumerate(branch.branches)
            for index, name in enumerate(names)
        }

    def place(self, name: str) -> PathPlace | None:
        """Return where an element stands; None outside all branches."""
        return self._places.get(name)

    def require(self, *names: str) -> None:
        """Raise for a name that is neither a step nor a branch."""
        for name in names:
            if name not in self.steps and name not in self.branches:
                raise ImpossibleEditError(Text.of("there is no step or branch {name!r}", name=name))

    def step(self, name: str) -> Step:
        """Return a step by its name."""
        if name not in self.steps:
            raise ImpossibleEditError(Text.of("there is no step {name!r}", name=name))
        return self.steps[name]

    def branch(self, name: str) -> Branch:
        """Return a branch by its name."""
        if name not in self.branches:
            raise ImpossibleEditError(Text.of("there is no branch {name!r}", name=name))
        return self.branches[name]

    def inside(self, names: Iterable[str]) -> frozenset[str]:
        """Return these elements and everything within them."""
        elements: set[str] = set()
        for name in names:
            elements.add(name)
            if branch := self.branches.get(name):
                elements |= self.inside(element for path in branch.branches for element in path)
        return frozenset(elements)

    def entries(self, name: str) -> frozenset[str]:
        """Return the names by which a transition enters an element: itself, and the heads of a leading selection."""
        branch = self.branches.get(name)
        if branch is None or branch.type is BranchType.SIMULTANEOUS:
            return frozenset({name})
        return frozenset({name}).union(*(self.entries(path[0]) for path in branch.branches if path))

    def is_entry(self, way: Transition) -> bool:
        """Return whether a transition chooses or guards a path of its own source."""
        branch = self.branches.get(way.source)
        return branch is not None and any(way.target in self.entries(path[0]) for path in branch.branches)

    def next_in_path(self, name: str) -> str | None:
        """Return the element that follows in the same path."""
        place = self.place(name)
        return place.elements[place.index + 1] if place and place.index + 1 < len(place.elements) else None

    def ways_on(self, name: str) -> list[Transition]:
        """Return the transitions that leave an element, with the implied one to the next element of its path.

        A selection is also left by what its paths end with, and a branch does not leave by what enters its paths.
        """
        branch = self.branches.get(name)
        heads = frozenset[str]().union(*(self.entries(path[0]) for path in branch.branches)) if branch else frozenset()
        written = [way for way in self.recipe.transitions if way.source == name and way.target not in heads]
        following = self.next_in_path(name)
        if following is not None and not any(way.target in self.entries(following) for way in written):
            written.append(Transition(name, following, ALWAYS))
        return written

    def ways_to_next(self, name: str) -> list[Transition]:
        """Return the ways on that are not jumps: in a path those to its next element, elsewhere all."""
        if self.place(name) is None:
            return self.ways_on(name)
        following = self.next_in_path(name)
        entries = frozenset[str]() if following is None else self.entries(following)
        return [way for way in self.ways_on(name) if way.target in entries]

    def run(self, first: str, last: str) -> tuple[str, ...]:
        """Return the elements from `first` to `last`, which follow each other without alternatives."""
        self.require(first, last)
        place, end = self.place(first), self.place(last)
        if (
            place
            and end
            and (place.branch.name, place.path) == (end.branch.name, end.path)
            and place.index <= end.index
        ):
            return place.elements[place.index : end.index + 1]
        elements = () if place or end else self._shortest_way(first, last)
        if not elements or any(self.place(element) for element in elements):
            raise ImpossibleEditError(
                Text.of("{last!r} does not follow {first!r} in one line of steps", first=first, last=last)
            )
        return elements

    def _shortest_way(self, first: str, last: str) -> tuple[str, ...]:
        """Return the elements on the shortest way; none where no way leads there."""
        ways: dict[str, tuple[str, ...]] = {first: (first,)}
        waiting = deque([first])
        while waiting and last not in ways:
            element = waiting.popleft()
            for way in self.ways_on(element):
                if way.target not in ways:
                    ways[way.target] = (*ways[element], way.target)
                    waiting.append(way.target)
        return ways.get(last, ())


def require_new(recipe: Recipe, *names: str) -> None:
    """Raise for a name that is empty or used, and for two equal ones."""
    used = {step.name for step in recipe.steps} | {branch.name for branch in recipe.branches}
    for name in names:
        if not name:
            raise ImpossibleEditError(Text.of("a step or branch needs a name"))
        if name in used:
            raise ImpossibleEditError(Text.of("the name {name!r} is used already", name=name))
        used.add(name)


def transition_at(recipe: Recipe, number: int) -> Transition:
    """Return a written transition by its place in the list."""
    if not 0 <= number < len(recipe.transitions):
        raise ImpossibleEditError(Text.of("there is no transition {number}", number=number))
    return recipe.transitions[number]
