"""Divides a recipe into a tree of regions: the order of blocks, their outgoing transitions and jump targets.

The first of two passes. Every block outside of branches is placed once. A region lists its outgoing transitions, and
whether each one leads straight down, into a separate chain, or to a jump. `edge.drawing.reading` draws the tree.

A block dominates the blocks that are reached only through it. The blocks that a divergence dominates can be drawn below
it. Its paths converge at a block that several of them reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from edge.model.recipe import Branch, BranchType, Recipe
from edge.sfc.structure import Structure

# From this nesting depth on, the longest path of a selection is drawn straight down, not one level deeper.
_MAX_DEPTH: Final = 8
# A path of at least _LONG blocks is drawn straight down when the other paths have at most _SHORT blocks in total.
_LONG: Final = 4
_SHORT: Final = 2
_MAX_FEEDING: Final = 2


_FEWEST_JOINED: Final = 2


class Joins:
    """The graph of the blocks outside all branches; `hidden` arcs reach a block without a drawn line."""

    def __init__(self, root: str, arcs: Mapping[str, Sequence[str]], hidden: Mapping[str, Sequence[str]]) -> None:
        self.blocks = dict.fromkeys(arcs)
        self._ahead = {name: (*arcs[name], *hidden[name]) for name in arcs}
        self._rank = {name: rank for rank, name in enumerate(_reverse_postorder(root, self._ahead))}
        dominators = self._dominators(root)
        self._children: dict[str, list[str]] = {name: [] for name in arcs}
        for name, above in dominators.items():
            if name != root:
                self._children[above].append(name)
        self._first, self._last = self._intervals(root)
        self._feeding: dict[str, list[str]] = {name: [] for name in arcs}
        for source, targets in arcs.items():
            for target in dict.fromkeys(targets):
                if self._rank.get(source, -1) < self._rank.get(target, -1):
                    self._feeding[target].append(source)

    def _dominators(self, root: str) -> dict[str, str]:
        """Return the immediate dominator of each block, after Cooper, Harvey and Kennedy (2001)."""
        behind: dict[str, list[str]] = {name: [] for name in self._rank}
        for source in self._rank:
            for target in self._ahead[source]:
                behind[target].append(source)
        found = {root: root}
        changed = True
        while changed:
            changed = False
            for name in self._rank:
                if name == root:
                    continue
                known = [source for source in behind[name] if source in found]
                above = known[0]
                for source in known[1:]:
                    above = self._meet(found, above, source)
                if found.get(name) != above:
                    found[name] = above
                    changed = True
        return found

    def _meet(self, found: Mapping[str, str], one: str, other: str) -> str:
        while one != other:
            if self._rank[one] > self._rank[other]:
                one = found[one]
            else:
                other = found[other]
        return one

    def _intervals(self, root: str) -> tuple[dict[str, int], dict[str, int]]:
        """Number the dominator tree so that the blocks dominated by one block form an interval."""
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        stack: list[tuple[str, bool]] = [(root, False)]
        while stack:
            name, left = stack.pop()
            if left:
                last[name] = len(first)
                continue
            first[name] = len(first)
            stack.append((name, True))
            stack += [(child, False) for child in self._children[name]]
        return first, last

    def _dominates(self, above: str, name: str) -> bool:
        """Return whether a block is reached only through another one; false for one that is never reached."""
        return name in self._first and self._first[above] <= self._first[name] < self._last[above]

    def _size(self, name: str) -> int:
        return self._last[name] - self._first[name]

    def follow(
        self, block: str, targets: Sequence[str], outer: str | None, depth: int, free: Callable[[str], bool]
    ) -> str | None:
        """Choose the block drawn straight below a block and its transitions; None when there is no such block.

        `outer` is the block where the enclosing selections converge, `depth` is their number. `free` returns False for
        a block that is drawn already or that an enclosing selection will draw.
        """
        ahead = [name for name in dict.fromkeys(targets) if name in self._rank and free(name)]
        if not ahead:
            return None
        if len(set(targets)) == 1:
            return ahead[0]
        joined = self._join(block, set(targets), free)
        if joined is not None:
            return joined
        ahead = list(filter(self.stands_inline, ahead)) or ahead
        longest = max(ahead, key=self._size)
        beside = sum(map(self._size, ahead)) - self._size(longest)
        if depth >= _MAX_DEPTH or (self._size(longest) >= _LONG and beside <= _SHORT):
            return longest
        return longest if len(ahead) == 1 and outer not in targets else None

    def stands_inline(self, name: str) -> bool:
        """Return whether a block can be drawn inside a path that leads to it; a block with many sources cannot."""
        return name in self.blocks and len(self._feeding[name]) <= _MAX_FEEDING

    def _join(self, block: str, targets: AbstractSet[str], free: Callable[[str], bool]) -> str | None:
        """Return the block at which most of the paths that begin with these targets converge."""
        best: tuple[int, int] | None = None
        chosen = None
        for name in self._children.get(block, ()):
            feeding = self._feeding[name]
            if not free(name) or len(feeding) < _FEWEST_JOINED:
                continue
            with_steps = sum(
                any(source != block and self._dominates(target, source) for source in feeding)
                for target in targets
                if target != name and target in self._first
            )
            legs = with_steps + (name in targets)
            if with_steps > 1 or (legs > 1 and len(feeding) <= len(targets)):
                key = (-legs, self._rank[name])
                if best is None or key < best:
                    best, chosen = key, name
        return chosen


def _reverse_postorder(root: str, ahead: Mapping[str, Sequence[str]]) -> Iterator[str]:
    seen = {root}
    order = []
    stack = [(root, iter(ahead[root]))]
    while stack:
        name, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(ahead[target])))
                break
        else:
            order.append(name)
            stack.pop()
    return reversed(order)


class Edge(Struct, frozen=True):
    """A transition on its way to a block; `door` names the block inside a selection at which it enters it."""

    source: str
    target: str
    door: str
    conditions: tuple[str, ...]
    rank: tuple[int, ...]
    numbers: tuple[int, ...]


class Exit(Struct, frozen=True):
    """An outgoing transition of a region: `down` leads straight down, `inline` into a separate chain, else it jumps."""

    edge: Edge
    down: bool
    inline: Chain | None = None

    @property
    def leads_on(self) -> bool:
        """Return whether the line continues below."""
        return self.down or (self.inline is not None and self.inline.leads_on)


class PathRegion(Struct, frozen=True):
    """A path of a branch below the transitions into it; with `first_draws` its first block draws them itself."""

    entries: tuple[Edge, ...]
    first_draws: bool
    chain: Chain


class Region(Struct, frozen=True):
    """A step, or a branch with its paths, and its outgoing transitions.

    `aside` are the transitions drawn at the head of a selection that lead elsewhere. `continues` says that the line
    also continues without a transition.
    """

    block: str
    paths: tuple[PathRegion, ...]
    aside: tuple[Edge, ...]
    exits: tuple[Exit, ...]
    continues: bool


class Chain(Struct, frozen=True):
    """Regions from top to bottom; `leads_on` is whether the line continues below the last one."""

    regions: tuple[Region, ...]
    leads_on: bool


_Incoming: TypeAlias = tuple[Edge, ...] | None
"""Transitions that a selection draws at its head; None when they are drawn above it."""
_Outgoing: TypeAlias = tuple[tuple[Edge, ...], str | None]
"""The transitions that leave the end of a path, and the block to which they lead."""
_Placed: TypeAlias = tuple[Region, bool, _Incoming]
"""A region, whether it leads on, and the transitions that the next block draws."""


def read_regions(recipe: Recipe) -> tuple[Chain, ...]:
    """Return the chains of a recipe without shape faults: that of its initial step, then those reached by jumps."""
    return _Divider(recipe).divide()


class _Divider:
    """Walks a recipe from its initial step and places every block once."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.structure = Structure(recipe)
        self.branches = self.structure.branches
        self.around = {name: branch for branch in recipe.branches for path in branch.branches for name in path}
        self.place = {
            name: (branch.name, number)
            for branch in recipe.branches
            for number, path in enumerate(branch.branches)
            for name in path
        }
        self.leaving: dict[str, list[Edge]] = {}
        self.entering: dict[str, list[Edge]] = {}
        self.aimed_at: dict[str, set[int]] = {}
        for number in range(len(recipe.transitions)):
            self._add_edge(number)
        self.joins = self._joins()
        self.placed: set[str] = set()
        self.pending: list[str] = []

    def _add_edge(self, number: int) -> None:
        transition = self.recipe.transitions[number]
        rank = (transition.priority, number)
        target, door = self._entrance(transition.source, transition.target)
        self.aimed_at.setdefault(target, set()).add(number)
        if self.structure.is_entry(number):
            edge = Edge(transition.source, transition.target, "", (transition.condition,), rank, (number,))
            self.entering.setdefault(transition.source, []).append(edge)
        else:
            edge = Edge(transition.source, target, door, (transition.condition,), rank, (number,))
            self.leaving.setdefault(transition.source, []).append(edge)

    def _entrance(self, source: str, target: str) -> tuple[str, str]:
        """Return the block that a transition enters, and the door: the first block of a path that it names, if any."""
        block, door = target, ""
        while self.place.get(block) != self.place.get(source):
            outer = self.around.get(block)
            if outer is None or outer.type is not BranchType.SELECTION or outer.name == source:
                return target, ""
            if all(path[0] != block for path in outer.branches):
                return target, ""
            block, door = outer.name, target
        return block, door

    def _joins(self) -> Joins:
        """Return the blocks outside of branches as a graph; a jump out of a branch counts as one of its exits."""
        outer = [name for name in (*self._step_names(), *self.branches) if name not in self.around]
        arcs: dict[str, list[str]] = {name: [] for name in outer}
        hidden: dict[str, list[str]] = {name: [] for name in outer}
        for source, edges in self.leaving.items():
            top = self._top(source)
            for edge in edges:
                (arcs if top == source else hidden)[top].append(self._top(edge.target))
        return Joins(self._root(), arcs, hidden)

    def _step_names(self) -> list[str]:
        return [step.name for step in self.recipe.steps]

    def _root(self) -> str:
        return self._top(next(step.name for step in self.recipe.steps if step.initial))

    def _top(self, name: str) -> str:
        while name in self.around:
            name = self.around[name].name
        return name

    def divide(self) -> tuple[Chain, ...]:
        chains = [self._piece(self._root())]
        chains += [self._piece(name) for name in self.joins.blocks if name not in self.placed]
        return tuple(chains)

    def _piece(self, first: str) -> Chain:
        """Return the chain of a block that no line leads to; only jumps enter the paths of a branch then."""
        return self._chain(first, None, None if first in self.aimed_at else ())

    def _chain(self, first: str, follow: str | None, incoming: _Incoming) -> Chain:
        """Return the chain from a block outside of branches until `follow`."""
        regions: list[Region] = []
        block: str | None = first
        while block is not None:
            self.placed.add(block)
            edges = self._edges(block, None, ())
            targets = [edge.target for edge in edges]
            after = self.joins.follow(block, targets, follow, len(self.pending), self._free)
            if after is not None:
                self.pending.append(after)
            region, leads_on, incoming = self._region(block, edges, (after, follow), incoming, continues=False)
            regions.append(region)
            if after is None:
                return Chain(tuple(regions), leads_on)
            self.pending.pop()
            if not leads_on:
                # Only jumps lead there: it becomes a piece of its own.
                break
            block = after
        return Chain(tuple(regions), leads_on=False)

    def _path(self, names: tuple[str, ...], outgoing: _Outgoing, incoming: _Incoming) -> Chain:
        """Return the chain of a path. Without transitions that leave its end, the end continues without one."""
        exits, follow = outgoing
        regions: list[Region] = []
        leads_on = False
        for block, after in zip_longest(names, names[1:]):
            edges = self._edges(block, after, exits)
            continues = after is None and not exits
            region, leads_on, incoming = self._region(block, edges, (after, follow), incoming, continues=continues)
            regions.append(region)
        return Chain(tuple(regions), leads_on)

    def _edges(self, block: str, after: str | None, exits: tuple[Edge, ...]) -> tuple[Edge, ...]:
        """Return the transitions that leave a block, the first tested first: written ones, else implied ones."""
        own = list(self.leaving.get(block, ()))
        written = {edge.target for edge in own}
        if after is not None:
            if after not in written:
                own.append(Edge(block, after, "", (), (0, len(self.recipe.transitions)), ()))
        else:
            own += [edge for edge in exits if edge.numbers or edge.target not in written]
        return tuple(sorted(own, key=lambda edge: edge.rank))

    def _region(
        self,
        block: str,
        edges: tuple[Edge, ...],
        ways: tuple[str | None, str | None],
        incoming: _Incoming,
        *,
        continues: bool,
    ) -> _Placed:
        """Return a block and what leaves it; `ways` are the next block, and the one after the whole chain."""
        after, follow = ways
        down = after or follow
        branch = self.branches.get(block)
        handed_on = edges if after and self._meets(after, edges) else None
        paths: tuple[PathRegion, ...] = ()
        aside: tuple[Edge, ...] = ()
        if branch is not None and branch.type is BranchType.SIMULTANEOUS:
            paths = tuple(self._simultaneous_path(branch, path) for path in branch.branches)
        elif branch is not None:
            single = len(edges) == 1 and edges[0].target == down and not edges[0].door and not continues
            at_ends = edges if single and handed_on is None else ()
            paths, aside = self._selection(branch, incoming, (at_ends, down if at_ends else None))
            if at_ends:
                # The transition that leaves the selection is drawn at the end of every path.
                leads_on = any(path.chain.leads_on for path in paths)
                return Region(block, paths, aside, (), continues=False), leads_on, None
        if handed_on is not None:
            return Region(block, paths, aside, (), continues=False), True, handed_on
        exits = tuple(self._exit(edge, down, inline=block in self.joins.blocks) for edge in edges)
        leads_on = continues or any(item.leads_on for item in exits)
        return Region(block, paths, aside, exits, continues), leads_on, None

    def _exit(self, edge: Edge, down: str | None, *, inline: bool) -> Exit:
        if edge.target == down and not edge.door:
            return Exit(edge, down=True)
        if inline and not edge.door and self._free(edge.target) and self.joins.stands_inline(edge.target):
            return Exit(edge, down=False, inline=self._chain(edge.target, down, None))
        return Exit(edge, down=False)

    def _meets(self, after: str, edges: tuple[Edge, ...]) -> bool:
        """Return whether transitions to a selection are drawn together with those that choose its path."""
        branch = self.branches.get(after)
        if branch is None or branch.type is not BranchType.SELECTION:
            return False
        here = {number for edge in edges for number in edge.numbers}
        alone = self.aimed_at.get(after, set()) <= here
        # A jump to the selection must find there what concerns it and nothing else.
        plain = all(edge.target == after and not edge.door and _is_always(edge) for edge in edges)
        others = [edge.target for edge in edges if edge.target != after]
        return (alone or plain) and all(target in self.placed or target in self.around for target in others)

    def _simultaneous_path(self, branch: Branch, path: tuple[str, ...]) -> PathRegion:
        edges = [edge for edge in self.entering.get(branch.name, ()) if self._is_head(path, edge.target)]
        entries = [replace(edge, target=path[0], door=_door(path, edge.target)) for edge in edges]
        return self._path_region(path, entries, ((), None))

    def _is_head(self, path: tuple[str, ...], name: str) -> bool:
        return name in self.structure.heads(path[0])

    def _path_region(self, path: tuple[str, ...], entries: list[Edge], outgoing: _Outgoing) -> PathRegion:
        ranked = tuple(sorted(entries, key=lambda edge: edge.rank))
        first_draws = bool(ranked) and self._meets(path[0], ranked)
        return PathRegion(ranked, first_draws, self._path(path, outgoing, ranked if first_draws else None))

    def _selection(
        self, branch: Branch, incoming: _Incoming, outgoing: _Outgoing
    ) -> tuple[tuple[PathRegion, ...], tuple[Edge, ...]]:
        """Return the paths of a selection, and the transitions at its head that lead elsewhere."""
        if incoming is None:
            incoming = (Edge("", branch.name, "", (), (), ()),)
        into: dict[int, list[Edge]] = {number: [] for number in range(len(branch.branches))}
        for edge in incoming:
            if edge.target == branch.name:
                for number, entry in self._enter(branch, edge):
                    into[number].append(entry)
        aside = tuple(edge for edge in incoming if edge.target != branch.name)
        paths = (self._path_region(path, into[number], outgoing) for number, path in enumerate(branch.branches))
        return tuple(paths), aside

    def _enter(self, branch: Branch, edge: Edge) -> list[tuple[int, Edge]]:
        """Return the paths a transition may take into a selection, each joined with what chooses the path."""
        found = []
        for number, path in enumerate(branch.branches):
            if edge.door:
                if self._is_head(path, edge.door):
                    found.append((number, replace(edge, target=path[0], door=_door(path, edge.door))))
                continue
            choosing = [item for item in self.entering.get(branch.name, ()) if self._is_head(path, item.target)]
            if not choosing:
                rank = (*edge.rank, 0, len(self.recipe.transitions) + number)
                found.append((number, replace(edge, target=path[0], rank=rank)))
            found += [(number, _joined(edge, item, path)) for item in choosing]
        return found

    def _free(self, name: str) -> bool:
        return name not in self.placed and name not in self.pending


def _joined(edge: Edge, choosing: Edge, path: tuple[str, ...]) -> Edge:
    """Return a transition to a selection as one with the transition that chooses a path of it."""
    return Edge(
        edge.source,
        path[0],
        _door(path, choosing.target),
        edge.conditions + choosing.conditions,
        edge.rank + choosing.rank,
        edge.numbers + choosing.numbers,
    )


def _door(path: tuple[str, ...], name: str) -> str:
    return "" if path[0] == name else name


def _is_always(edge: Edge) -> bool:
    return all(text.strip() in {"always", "true"} for text in edge.conditions)
