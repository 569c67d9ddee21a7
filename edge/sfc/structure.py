"""Unfolds the branches of a recipe into plain arcs from steps to steps.

A branch is a block with ways in (which steps it activates, under which conditions) and ways out (which last steps have
to be active together). An arc is one written or implied transition with one way in and one way out filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise, product
from typing import Final

from msgspec import Struct

from edge.foundation.text import Text, as_text
from edge.model.recipe import Branch, BranchType, Recipe

MAX_WAYS: Final = 1000
MAX_ARCS: Final = 20_000
MAX_NESTING: Final = 32


class TooManyWaysError(Exception):
    """Too many combinations of selections in a branch or transition; `text` is its place."""

    def __init__(self, place: str | Text) -> None:
        super().__init__(str(place))
        self.text = as_text(place)


class Way(Struct, frozen=True):
    """One way into a step or branch: the steps it activates, its conditions, its rank among the other ways."""

    steps: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    rank: tuple[int, ...] = ()


class Arc(Struct, frozen=True):
    """A plain transition: when all sources are active and all conditions are true, the targets become active.

    `place` names the written transition it comes from, for messages.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    conditions: tuple[str, ...]
    rank: tuple[int, ...]
    place: str


class Structure:
    """The nesting of a recipe's branches; it requires sound names and nesting."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.branches = {branch.name: branch for branch in recipe.branches}
        self._parent: dict[str, tuple[Branch, int]] = {
            name: (branch, number)
            for branch in recipe.branches
            for number, path in enumerate(branch.branches)
            for name in path
        }
        self._entries: dict[tuple[str, str], list[int]] = {}
        self._by_source: dict[str, list[int]] = {}
        self._entry_numbers: set[int] = set()
        self._used_entries: set[int] = set()
        for number, transition in enumerate(recipe.transitions):
            self._by_source.setdefault(transition.source, []).append(number)
            branch = self.branches.get(transition.source)
            if branch and any(transition.target in self.heads(path[0]) for path in branch.branches):
                self._entries.setdefault((branch.name, transition.target), []).append(number)
                self._entry_numbers.add(number)

    def is_entry(self, number: int) -> bool:
        """Return whether a written transition chooses or guards a path of its own source."""
        return number in self._entry_numbers

    def chain(self, name: str) -> tuple[tuple[str, int], ...]:
        """Return the simultaneous paths around a step or branch, outermost first."""
        found = []
        while name in self._parent:
            branch, number = self._parent[name]
            if branch.type is BranchType.SIMULTANEOUS:
                found.append((branch.name, number))
            name = branch.name
        return tuple(reversed(found))

    def branches_around(self, name: str) -> Iterator[Branch]:
        """Yield the branches around a step or branch, innermost first."""
        while name in self._parent:
            branch, _ = self._parent[name]
            yield branch
            name = branch.name

    def heads(self, name: str) -> frozenset[str]:
        """Return the names by which a block is entered: itself, and the first blocks of a leading selection."""
        branch = self.branches.get(name)
        if branch is None or branch.type is BranchType.SIMULTANEOUS:
            return frozenset({name})
        return frozenset({name}).union(*(self.heads(path[0]) for path in branch.branches))

    def steps_of(self, names: Iterable[str]) -> frozenset[str]:
        """Return all steps in these blocks."""
        found: set[str] = set()
        for name in names:
            branch = self.branches.get(name)
            found |= {name} if branch is None else self.steps_of(n for path in branch.branches for n in path)
        return frozenset(found)

    def ways_in(self, name: str) -> list[Way]:
        """Return every way into a step or branch."""
        branch = self.branches.get(name)
        if branch is None:
            return [Way((name,))]
        paths = [self._ways_into_path(branch, number) for number in range(len(branch.branches))]
        if branch.type is BranchType.SELECTION:
            ways = [way for path in paths for way in path]
        else:
            _bound(branch, paths)
            ways = [_together(chosen) for chosen in product(*paths)]
        _bound(branch, [ways])
        return ways

    def _ways_into_path(self, branch: Branch, number: int) -> list[Way]:
        first = branch.branches[number][0]
        written = sorted(n for head in self.heads(first) for n in self._entries.get((branch.name, head), ()))
        if not written:
            # An implied transition comes after all written ones, with the default priority.
            rank = (0, len(self.recipe.transitions) + number)
            return [Way(way.steps, way.conditions, rank + way.rank) for way in self.ways_in(first)]
        ways = []
        self._used_entries.update(written)
        for n in written:
            transition = self.recipe.transitions[n]
            ways += [
                Way(way.steps, (transition.condition, *way.conditions), (transition.priority, n, *way.rank))
                for way in self.ways_in(transition.target)
            ]
        return ways

    def ways_out(self, name: str) -> list[tuple[str, ...]]:
        """Return every set of last steps whose common activity ends a step or branch."""
        branch = self.branches.get(name)
        if branch is None:
            return [(name,)]
        paths = [self.ways_out(path[-1]) for path in branch.branches]
        if branch.type is BranchType.SELECTION:
            ways = [way for path in paths for way in path]
        else:
            _bound(branch, paths)
            ways = [tuple(step for way in chosen for step in way) for chosen in product(*paths)]
        _bound(branch, [ways])
        return ways

    @cached_property
    def arcs(self) -> tuple[Arc, ...]:
        """Return every arc of the recipe, best rank first."""
        arcs: list[Arc] = []
        for arc in chain(self._written(), self._implied()):
            if len(arcs) == MAX_ARCS:
                raise TooManyWaysError(arc.place)
            arcs.append(arc)
        arcs.sort(key=lambda arc: arc.rank)
        return tuple(arcs)

    @property
    def unused_entries(self) -> Sequence[int]:
        """Return the written transitions that choose a path of their source, which no arc ever enters as a whole."""
        return sorted(self._entry_numbers - self._used_entries) if self.arcs else ()

    def _written(self) -> Iterator[Arc]:
        for number, transition in enumerate(self.recipe.transitions):
            if self.is_entry(number):
                continue
            place = f"transitions[{number}] ({transition.source} → {transition.target})"
            inward = self.ways_in(transition.target)
            yield from (
                Arc(
                    sources=sources,
                    targets=way.steps,
                    conditions=(transition.condition, *way.conditions),
                    rank=(transition.priority, number, *way.rank),
                    place=place,
                )
                for sources in self.ways_out(transition.source)
                for way in inward
            )

    def _implied(self) -> Iterator[Arc]:
        """Join consecutive blocks of a path by `always` where nothing is written between them."""
        order = len(self.recipe.transitions)
        for branch in self.recipe.branches:
            for path in branch.branches:
                for source, target in pairwise(path):
                    order += 1
                    if self._is_written(source, target):
                        continue
                    yield from (
                        Arc(
                            sources=sources,
                            targets=way.steps,
                            conditions=way.conditions,
                            rank=(0, order, *way.rank),
                            place=f"{source} → {target} in branch {branch.name}",
                        )
                        for sources in self.ways_out(source)
                        if not (len(sources) == 1 and self._is_written(sources[0], target))
                        for way in self.ways_in(target)
                    )

    def _is_written(self, source: str, target: str) -> bool:
        heads = self.heads(target)
        return any(self.recipe.transitions[n].target in heads for n in self._by_source.get(source, ()))


def _together(ways: tuple[Way, ...]) -> Way:
    return Way(
        steps=tuple(step for way in ways for step in way.steps),
        conditions=tuple(condition for way in ways for condition in way.conditions),
        rank=tuple(part for way in ways for part in way.rank),
    )


def _bound(branch: Branch, factors: list[list[Way]] | list[list[tuple[str, ...]]]) -> None:
    ways = 1
    for factor in factors:
        ways *= len(factor)
    if ways > MAX_WAYS:
        raise TooManyWaysError(Text.of("branch {branch!r}", branch=branch.name))
