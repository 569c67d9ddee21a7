"""Estimates how large the chart of a recipe is before it is unfolded: selections in parallel paths multiply."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from edge.model.recipe import BranchType, Recipe
from edge.sfc.structure import Structure


def ends_of(recipe: Recipe) -> int:
    """Return an upper limit for the steps before and after all transitions of the chart of a recipe together.

    The recipe has no faults of its shape (`edge.sfc.check.shape_faults`).
    """
    extent = _Extent(recipe)
    joints = [pair for branch in recipe.branches for path in branch.branches for pair in pairwise(path)]
    ways = [(transition.source, transition.target) for transition in recipe.transitions]
    return sum(extent.ends(source, target) for source, target in (*ways, *joints))


class _Extent:
    """Counts the ways into and out of blocks, and the steps of each."""

    def __init__(self, recipe: Recipe) -> None:
        self._branches = {branch.name: branch for branch in recipe.branches}
        self._structure = Structure(recipe)
        self._entries: dict[str, list[str]] = {}
        for transition in recipe.transitions:
            self._entries.setdefault(transition.source, []).append(transition.target)
        self._inward: dict[str, tuple[int, int]] = {}
        self._outward: dict[str, tuple[int, int]] = {}

    def ends(self, source: str, target: str) -> int:
        """Return the ends of all arcs of a transition."""
        ways_out, last = self._out(source)
        ways_in, first = self._in(target)
        return ways_out * ways_in * (last + first)

    def _in(self, name: str) -> tuple[int, int]:
        """Return the ways into a block, and the most steps that one of them enters."""
        branch = self._branches.get(name)
        if branch is None:
            return 1, 1
        if name not in self._inward:
            paths = []
            for path in branch.branches:
                heads = self._structure.heads(path[0])
                written = sum(target in heads for target in self._entries.get(name, ()))
                ways, steps = self._in(path[0])
                paths.append((max(written, 1) * ways, steps))
            self._inward[name] = _together(branch.type, paths)
        return self._inward[name]

    def _out(self, name: str) -> tuple[int, int]:
        """Return the ways out of a block, and the most steps that end together."""
        branch = self._branches.get(name)
        if branch is None:
            return 1, 1
        if name not in self._outward:
            self._outward[name] = _together(branch.type, [self._out(path[-1]) for path in branch.branches])
        return self._outward[name]


def _together(kind: BranchType, paths: list[tuple[int, int]]) -> tuple[int, int]:
    ways, steps = zip(*paths, strict=True)
    if kind is BranchType.SELECTION:
        return sum(ways), max(steps)
    return prod(ways), sum(steps)
