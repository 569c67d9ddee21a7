"""Makes a recipe of a chart: its steps, branches, transitions and actions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from edge.features.recipes.plcopen.chart import ChartArc
from edge.features.recipes.plcopen.facts import PlcElement
from edge.features.recipes.plcopen.finding import PlcFinding
from edge.features.recipes.plcopen.nesting import BlockArc, Nesting, levels_of
from edge.features.recipes.plcopen.paths import LoopError, Path, PathChoice, PathItem, arrange
from edge.foundation.text import Text

Json = dict[str, Any]
_SEPARATE: Final = "never"
_MAX_DIGITS: Final = 20


def sort_key(arc: ChartArc) -> tuple[bool, int, float, int]:
    """Return the order of a transition: by priority, those with one first, then from left to right, then document."""
    transition = arc.transition
    text = transition.node.get("priority")
    has_priority = text.isdecimal() and len(text) <= _MAX_DIGITS
    return (not has_priority, int(text) if has_priority else 0, transition.x, transition.order)


def priorities_of(arcs: Sequence[ChartArc]) -> dict[int, int]:
    """Return the priority of each transition: among those that compete for a step they count from 0."""
    root: dict[int, int] = {}

    def find(step: int) -> int:
        while root.setdefault(step, step) != step:
            root[step] = root[root[step]]
            step = root[step]
        return step

    for arc in arcs:
        for step in arc.sources[1:]:
            root[find(step)] = find(arc.sources[0])
    rivals: dict[int, list[ChartArc]] = {}
    for arc in arcs:
        rivals.setdefault(find(arc.sources[0]), []).append(arc)
    return {
        arc.transition.local_id: number
        for group in rivals.values()
        for number, arc in enumerate(sorted(group, key=sort_key))
    }


class BranchMaker:
    """Names the branches of a chart and lists them, with the transitions that keep neighbours apart."""

    def __init__(self, nesting: Nesting, steps: Mapping[int, str], faults: list[PlcFinding]) -> None:
        self._nesting = nesting
        self._faults = faults
        self._numbers: dict[str, Iterator[int]] = {}
        self._used = {name.upper() for name in steps.values()}
        self.names: dict[int, str] = dict(steps)
        for parallels in nesting.parallels.values():
            self.names[parallels.number] = self._free(parallels.name, "Parallel")
        self._levels = levels_of(nesting)
        self._graph: dict[int, list[int]] = {}
        for arc in sorted(nesting.arcs, key=lambda arc: sort_key(arc.arc)):
            self._graph.setdefault(arc.source, []).append(arc.target)
        self.branches: list[Json] = []
        self.joints: list[tuple[str, str]] = []

    def _free(self, wanted: str, kind: str) -> str:
        """Return a name that nothing has: that of the chart, else a numbered one."""
        name = wanted
        while not name or name.upper() in self._used:
            name = f"{wanted or kind}{next(self._numbers.setdefault(wanted or kind, itertools.count(1)))}"
        self._used.add(name.upper())
        return name

    def make(self, initial: int) -> None:
        """Build the branches: the outer selections, then all parallel paths."""
        self._outer(initial)
        for parallels in self._nesting.parallels.values():
            context = self._nesting.contexts[parallels.number]
            paths = []
            for number, first in enumerate(parallels.first):
                level = (*context, (parallels.number, number))
                try:
                    path = arrange(set(self._levels[level]), self._graph, first, parallels.last[number])
                except LoopError:
                    text = Text.of(
                        "a parallel path begins and ends with step {name!r}: add a step at its end",
                        name=self.names[first],
                    )
                    self._faults.append(PlcFinding(parallels.arc.transition.place, text))
                    continue
                paths.append(self._listed(path))
            self.branches.append({"name": self.names[parallels.number], "type": "simultaneous", "branches": paths})

    def _outer(self, initial: int) -> None:
        """Build selections outside of parallel paths, where their paths leave nothing to keep apart."""
        blocks = self._levels[()]
        ends = [block for block in blocks if not self._graph.get(block)] or blocks
        if ends[-1] == initial:
            return
        path = arrange(set(blocks), self._graph, initial, ends[-1])
        for before, item, after in zip(path, path[1:], path[2:], strict=False):
            if isinstance(item, PathChoice) and isinstance(before, int) and isinstance(after, int):
                clean = tuple(part for part in item.paths if self._is_clean(before, part, after))
                if clean:
                    self._selection(PathChoice(clean))

    def _is_clean(self, before: int, path: Path, after: int) -> bool:
        """Return whether a path leads from one block to another, each of its blocks to the next one."""
        steps = (before, *path, after)
        return all(
            isinstance(one, int) and isinstance(other, int) and other in self._graph.get(one, ())
            for one, other in itertools.pairwise(steps)
        )

    def _selection(self, choice: PathChoice) -> str:
        name = self._free("", "Selection")
        self.branches.append(
            {"name": name, "type": "selection", "branches": [self._listed(path) for path in choice.paths]}
        )
        return name

    def _listed(self, path: Path) -> list[str]:
        names = [self.names[item] if isinstance(item, int) else self._selection(item) for item in path]
        for number in range(len(path) - 1):
            if not self._is_joined(path[number], path[number + 1]):
                self.joints.append((names[number], names[number + 1]))
        return names

    def _is_joined(self, one: PathItem, other: PathItem) -> bool:
        """Return whether the written transitions replace the one that the language implies between neighbours."""
        heads = set(_heads(other))
        if isinstance(one, int):
            return not heads.isdisjoint(self._graph.get(one, ()))
        return all(end >= 0 and not heads.isdisjoint(self._graph.get(end, ())) for end in _ends(one))

    def transitions(self, conditions: Mapping[int, str]) -> Iterator[tuple[Json, PlcElement | None]]:
        """Yield the transitions in the order of the blocks that they leave, each with its element."""
        arcs = sorted(self._nesting.arcs, key=lambda arc: sort_key(arc.arc))
        leaving: dict[int, list[BlockArc]] = {}
        for arc in arcs:
            leaving.setdefault(arc.source, []).append(arc)
        priorities = priorities_of([arc.arc for arc in arcs])
        for block in self._nesting.contexts:
            for arc in leaving.get(block, ()):
                number = arc.arc.transition.local_id
                transition = {
                    "source": self.names[arc.source],
                    "target": self.names[arc.target],
                    "condition": conditions[number],
                    "priority": priorities[number],
                }
                yield transition, arc.arc.transition
        for source, target in self.joints:
            yield {"source": source, "target": target, "condition": _SEPARATE}, None


def _heads(item: PathItem) -> Iterator[int]:
    if isinstance(item, int):
        yield item
    else:
        for path in item.paths:
            yield from _heads(path[0])


def _ends(item: PathItem) -> Iterator[int]:
    if isinstance(item, int):
        yield item
    else:
        for path in item.paths:
            yield from _ends(path[-1])
