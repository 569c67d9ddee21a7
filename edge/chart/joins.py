"""Finds the block where the paths of a selection converge, and the path that is drawn straight down.

A block dominates the blocks that are reached only through it. The blocks that a divergence dominates can be drawn below
it. Its paths converge at a block that several of them reach.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

# From this nesting depth on, the longest path of a selection is drawn straight down, not one level deeper.
_MAX_DEPTH: Final = 8
# A path of at least _LONG blocks is drawn straight down when the other paths have at most _SHORT blocks in total.
_LONG: Final = 4
_SHORT: Final = 2
_MAX_FEEDING: Final = 2


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
        return self._first[above] <= self._first[name] < self._last[above]

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
            if not free(name) or len(feeding) < 2:  # noqa: PLR2004  a join joins two
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
