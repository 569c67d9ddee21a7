"""Finds the parallel paths of a chart: which steps stand in which path, and where the paths converge.

Each step has a context, the parallel paths around it, outermost first. The transitions are followed from the initial
step: one that enters parallel paths adds one, one that ends them removes one. A step with two contexts is the target
of a jump into or out of paths.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from edge.features.recipes.plcopen.chart import ChartArc, Entry, Parallel
from edge.features.recipes.plcopen.finding import PlcFinding
from edge.foundation.text import Text

Context: TypeAlias = tuple[tuple[int, int], ...]
"""The parallel paths around a block: the number of each divergence, and of the path in it."""
Key: TypeAlias = int | tuple[object, ...]


class Parallels(Struct):
    """Parallel paths: their first and last blocks, a step by its localId or others by their number below zero.

    Their own number is below zero, so that it is different from those of steps.
    """

    number: int
    name: str
    first: tuple[int, ...]
    last: dict[int, int]
    arc: ChartArc


class BlockArc(Struct, frozen=True):
    """A transition from block to block of one level."""

    arc: ChartArc
    source: int
    target: int


class Nesting(Struct, frozen=True):
    """The blocks of a chart: the context of each, the parallel paths by their numbers, and the transitions."""

    contexts: Mapping[int, Context]
    parallels: Mapping[int, Parallels]
    arcs: tuple[BlockArc, ...]


class NestingReader:
    """Finds the contexts; appends a fault for each transition that leads into, out of or past parallel paths."""

    def __init__(self, initial: int, arcs: Sequence[ChartArc], faults: list[PlcFinding]) -> None:
        self._faults = faults
        self._arcs = arcs
        self._contexts: dict[int, Context] = {initial: ()}
        self._parallels: dict[int, Parallels] = {}
        self._numbers: dict[Key, int] = {}
        self._ends: dict[tuple[int, ...], int | None] = {}
        self._missing = [len(arc.sources) for arc in arcs]
        self._leaving: dict[int, list[int]] = {}
        for number, arc in enumerate(arcs):
            for source in arc.sources:
                self._leaving.setdefault(source, []).append(number)
        self._reached = deque([initial])

    def read(self) -> Nesting:
        """Return the blocks that the initial step reaches."""
        block_arcs = []
        while self._reached:
            for number in self._leaving.get(self._reached.popleft(), ()):
                self._missing[number] -= 1
                if self._missing[number] == 0:
                    block_arc = self._follow(self._arcs[number])
                    if block_arc is not None:
                        block_arcs.append(block_arc)
        for parallels in self._parallels.values():
            if len(parallels.last) < len(parallels.first):
                text = Text.of(
                    "the parallel paths do not converge: a simultaneousConvergence of all of them is missing"
                )
                self._fault(parallels.arc, text)
        outer_first = dict(sorted(self._parallels.items(), reverse=True))
        return Nesting(self._contexts, outer_first, tuple(block_arcs))

    def _fault(self, arc: ChartArc, text: Text) -> None:
        self._faults.append(PlcFinding(arc.transition.place, text))

    def _follow(self, arc: ChartArc) -> BlockArc | None:
        source = self._source(arc)
        if source is None:
            return None
        target = self._enter(arc, arc.entry, self._contexts[source])
        return None if target is None else BlockArc(arc, source, target)

    def _source(self, arc: ChartArc) -> int | None:
        """Return the block whose end the steps before a transition are."""
        if len(arc.sources) == 1:
            return arc.sources[0]
        if arc.sources not in self._ends:
            self._ends[arc.sources] = self._converge(arc)
        return self._ends[arc.sources]

    def _converge(self, arc: ChartArc) -> int | None:
        blocks = set(arc.sources)
        while len(blocks) > 1:
            depth = max(len(self._contexts[block]) for block in blocks)
            if depth == 0:
                self._fault(arc, Text.of("the convergence joins steps that do not stand in parallel paths"))
                return None
            deepest = {block for block in blocks if len(self._contexts[block]) == depth}
            ended: dict[int, dict[int, int]] = {}
            for block in deepest:
                number, path = self._contexts[block][-1]
                ended.setdefault(number, {})[path] = block
            for number, paths in ended.items():
                if not self._ended(self._parallels[number], paths, arc):
                    return None
                blocks -= set(paths.values())
                blocks.add(number)
            if deepest & blocks:
                self._fault(arc, Text.of("a path converges twice"))
                return None
        return blocks.pop()

    def _ended(self, parallels: Parallels, paths: Mapping[int, int], arc: ChartArc) -> bool:
        """Record the last blocks of parallel paths; return whether all paths end here, as in other convergences."""
        if len(paths) < len(parallels.first):
            self._fault(arc, Text.of("the convergence does not end all paths that began together"))
            return False
        if any(parallels.last.setdefault(path, block) != block for path, block in paths.items()):
            text = Text.of("a parallel path ends in several steps: let them lead to one step before the convergence")
            self._fault(arc, text)
            return False
        return True

    def _enter(self, arc: ChartArc, entry: Entry, context: Context) -> int | None:
        """Set the context of what a transition enters; return the block."""
        number = entry if isinstance(entry, int) else self._number(arc, entry)
        if number not in self._contexts:
            self._contexts[number] = context
            if isinstance(entry, int):
                self._reached.append(number)
        if self._contexts[number] != context:
            self._fault(arc, Text.of("leads into or out of parallel paths; only their divergence and convergence do"))
            return None
        if isinstance(entry, Parallel):
            paths = enumerate(entry.paths)
            entered = [self._enter(arc, path, (*context, (number, place))) for place, path in paths]
            return None if None in entered else number
        return number

    def _number(self, arc: ChartArc, entry: Parallel) -> int:
        key = _key(entry)
        if key not in self._numbers:
            number = self._numbers[key] = -1 - len(self._numbers)
            first = tuple(path if isinstance(path, int) else self._number(arc, path) for path in entry.paths)
            self._parallels[number] = Parallels(number, entry.name, first, {}, arc)
        return self._numbers[key]


def _key(entry: Entry) -> Key:
    if isinstance(entry, int):
        return entry
    return tuple(sorted((_key(path) for path in entry.paths), key=repr))


def levels_of(nesting: Nesting) -> dict[Context, list[int]]:
    """Return the blocks of each context, in the order in which they are reached."""
    levels: dict[Context, list[int]] = {}
    for block, context in nesting.contexts.items():
        levels.setdefault(context, []).append(block)
    return levels
