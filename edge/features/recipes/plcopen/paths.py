"""Arranges the blocks of a level as a path: single-entry-single-exit regions become selections.

A path is a list; blocks off the way from its first to its last block are put into a selection between two blocks
that every run passes. Transitions are written for each arc, so the list only groups. What the language would add to a
list, an implied `always` between neighbours, is kept away by a transition that is never true where no arc joins them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

Graph: TypeAlias = Mapping[int, Sequence[int]]
"""The blocks that follow each block of a level."""
_MAX_DEPTH: Final = 12


class PathChoice(Struct, frozen=True):
    """A selection of paths."""

    paths: tuple[Path, ...]


PathItem: TypeAlias = int | PathChoice
Path: TypeAlias = tuple[PathItem, ...]


class LoopError(Exception):
    """A path that begins and ends with the same block, and has others: it has no form as a list."""


def arrange(blocks: AbstractSet[int], graph: Graph, first: int, last: int, depth: int = 0) -> Path:
    """Return the blocks as a path from the first to the last one; all are reached from the first one.

    Raises LoopError.
    """
    cuts, beside = _cut(blocks, graph, first, last)
    if len(cuts) == 1 and beside[0]:
        raise LoopError
    if beside[-1]:
        # What follows the last block leads back.
        beside[-2].extend(beside.pop())
        beside.append([])
    path: list[PathItem] = []
    for number, cut in enumerate(cuts):
        path.append(cut)
        if beside[number]:
            order = list(graph.get(cut, ()))
            parts = sorted(_components(beside[number], graph), key=partial(_first_place, order))
            follower = cuts[number + 1]
            path.append(PathChoice(tuple(_component_path(part, graph, cut, follower, depth) for part in parts)))
    return tuple(path)


def _first_place(order: Sequence[int], part: Sequence[int]) -> int:
    inside = set(part)
    return next((place for place, block in enumerate(order) if block in inside), len(order))


def _cut(blocks: AbstractSet[int], graph: Graph, first: int, last: int) -> tuple[list[int], list[list[int]]]:
    """Return the blocks that each way from the first to the last one passes, and those behind each of them."""
    way = _way(blocks, graph, first, last)
    place = {block: number for number, block in enumerate(way)}
    cuts: list[int] = []
    beside: list[list[int]] = []
    seen: set[int] = set()
    furthest = 0
    for number, block in enumerate(way):
        if furthest == number:
            cuts.append(block)
            beside.append([])
        else:
            beside[-1].append(block)
        stack = [block]
        while stack:
            for follower in graph.get(stack.pop(), ()):
                if follower in place:
                    furthest = max(furthest, place[follower])
                elif follower in blocks and follower not in seen:
                    seen.add(follower)
                    beside[-1].append(follower)
                    stack.append(follower)
    return cuts, beside


def _way(blocks: AbstractSet[int], graph: Graph, first: int, last: int) -> list[int]:
    before: dict[int, int] = {first: first}
    reached = deque([first])
    while reached and last not in before:
        block = reached.popleft()
        for follower in graph.get(block, ()):
            if follower in blocks and follower not in before:
                before[follower] = block
                reached.append(follower)
    way = [last]
    while way[-1] != first:
        way.append(before[way[-1]])
    return way[::-1]


def _components(blocks: Sequence[int], graph: Graph) -> list[list[int]]:
    """Return the blocks that arcs among them join."""
    root = {block: block for block in blocks}

    def find(block: int) -> int:
        while root[block] != block:
            root[block] = root[root[block]]
            block = root[block]
        return block

    for block in blocks:
        for follower in graph.get(block, ()):
            if follower in root:
                root[find(follower)] = find(block)
    parts: dict[int, list[int]] = {}
    for block in blocks:
        parts.setdefault(find(block), []).append(block)
    return list(parts.values())


def _component_path(part: Sequence[int], graph: Graph, cut: int, follower: int, depth: int) -> Path:
    inside = set(part)
    entered = [block for block in graph.get(cut, ()) if block in inside]
    first = entered[0] if entered else part[0]
    order = _reached(inside, graph, first)
    leaving = [block for block in order[1:] if follower in graph.get(block, ())]
    ends = leaving or [block for block in order[1:] if not inside.intersection(graph.get(block, ()))] or order[1:]
    if len(order) == len(part) and ends and depth < _MAX_DEPTH:
        return arrange(inside, graph, first, ends[-1], depth + 1)
    return (*order, *(block for block in part if block not in set(order)))


def _reached(blocks: AbstractSet[int], graph: Graph, first: int) -> list[int]:
    order = {first: None}
    reached = deque([first])
    while reached:
        for follower in graph.get(reached.popleft(), ()):
            if follower in blocks and follower not in order:
                order[follower] = None
                reached.append(follower)
    return list(order)
