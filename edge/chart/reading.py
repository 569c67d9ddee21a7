"""Reads a recipe as the elements of a chart.

A selection is drawn as the standard has it, with a transition at the head and at the end of each path: the transition
that leads to a branch is drawn together with those that choose a path, and the one that leaves it is drawn at the end
of every path. Where a chart cannot be drawn without crossing lines, a jump names its target.
"""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from edge.chart.elements import Chart, Fork, Item, Jump, Leg, Sequence, StepBlock, TransitionBar
from edge.chart.joins import Joins
from edge.model.recipe import Action, Branch, BranchType, Recipe
from edge.sfc.structure import Structure

_CONSTANTS: Final = {"always": "TRUE", "true": "TRUE", "never": "FALSE", "false": "FALSE"}


@dataclass(frozen=True, slots=True)
class _Edge:
    """A transition on its way to a block; `door` names the block inside a selection at which it enters it."""

    source: str
    target: str
    door: str
    conditions: tuple[str, ...]
    rank: tuple[int, ...]
    numbers: tuple[int, ...]


def read_chart(recipe: Recipe) -> Chart:
    """Give the chart of a recipe in whose shape `edge.sfc.check` has found no fault."""
    return _Reader(recipe).read()


class _Reader:
    """Walks a recipe from its initial step and takes every step once."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.structure = Structure(recipe)
        self.branches = self.structure.branches
        self.steps = {step.name: step for step in recipe.steps}
        self.actions: dict[str, list[tuple[int, Action]]] = {}
        for number, action in enumerate(recipe.actions):
            self.actions.setdefault(action.step, []).append((number, action))
        self.around = {name: branch for branch in recipe.branches for path in branch.branches for name in path}
        self.place = {
            name: (branch.name, number)
            for branch in recipe.branches
            for number, path in enumerate(branch.branches)
            for name in path
        }
        self.leaving: dict[str, list[_Edge]] = {}
        self.entering: dict[str, list[_Edge]] = {}
        self.aimed_at: dict[str, set[int]] = {}
        for number in range(len(recipe.transitions)):
            self._note(number)
        self.joins = self._joins()
        self.placed: set[str] = set()
        self.pending: list[str] = []
        self.arrivals: dict[str, list[str]] = {}

    def _note(self, number: int) -> None:
        transition = self.recipe.transitions[number]
        inside = self.structure.is_entry(number)
        target, door = transition.target, ""
        # A transition may name the first block of a selection's path: then it enters the selection by that door.
        while self.place.get(target) != self.place.get(transition.source):
            outer = self.around.get(target)
            if outer is None or outer.type is not BranchType.SELECTION or outer.name == transition.source:
                target, door = transition.target, ""
                break
            if all(path[0] != target for path in outer.branches):
                target, door = transition.target, ""
                break
            target, door = outer.name, transition.target
        rank = (transition.priority, number)
        edge = _Edge(transition.source, target, door, (transition.condition,), rank, (number,))
        if inside:
            edge = replace(edge, target=transition.target, door="")
        (self.entering if inside else self.leaving).setdefault(transition.source, []).append(edge)
        self.aimed_at.setdefault(target, set()).add(number)

    def _joins(self) -> Joins:
        """Look at the blocks outside all branches as a graph; a jump out of a branch counts as one of its exits."""
        outer = [name for name in (*self.steps, *self.branches) if name not in self.around]
        arcs: dict[str, list[str]] = {name: [] for name in outer}
        hidden: dict[str, list[str]] = {name: [] for name in outer}
        for source, edges in self.leaving.items():
            top = self._top(source)
            for edge in edges:
                (arcs if top == source else hidden)[top].append(self._top(edge.target))
        return Joins(self._root(), arcs, hidden)

    def _root(self) -> str:
        return self._top(next(step.name for step in self.recipe.steps if step.initial))

    def _top(self, name: str) -> str:
        while name in self.around:
            name = self.around[name].name
        return name

    def read(self) -> Chart:
        """Give the chart."""
        pieces = [self._piece(self._root())]
        pieces += [self._piece(name) for name in self.joins.blocks if name not in self.placed]
        return Chart(tuple(pieces), {target: tuple(sources) for target, sources in self.arrivals.items()})

    def _piece(self, first: str) -> Sequence:
        """Read what follows a block that no line leads to; of a branch, nothing enters the paths then but jumps."""
        return self._chain(first, None, None if first in self.aimed_at else ())[0]

    def _chain(self, first: str, follow: str | None, incoming: tuple[_Edge, ...] | None) -> tuple[Sequence, bool]:
        """Read on from a block outside all branches until `follow`; tell also whether the chain leads there."""
        items: list[Item] = []
        block: str | None = first
        while block is not None:
            self.placed.add(block)
            edges = self._edges(block, None, ())
            targets = [edge.target for edge in edges]
            after = self.joins.follow(block, targets, follow, len(self.pending), self._free)
            if after is not None:
                self.pending.append(after)
            more, led, incoming = self._block(block, edges, (after, follow), incoming, bare=False)
            items += more
            if after is None:
                return tuple(items), led
            self.pending.pop()
            if not led:
                # Only jumps lead there: it is a piece of its own.
                return tuple(items), False
            block = after
        return tuple(items), False

    def _path(
        self,
        names: tuple[str, ...],
        exits: tuple[_Edge, ...],
        follow: str | None,
        incoming: tuple[_Edge, ...] | None,
    ) -> tuple[Sequence, bool]:
        """Read a path; `exits` leave its end to `follow`. Without them its end goes on without a transition."""
        items: list[Item] = []
        led = False
        for block, after in zip_longest(names, names[1:]):
            edges = self._edges(block, after, exits)
            bare = after is None and not exits
            more, led, incoming = self._block(block, edges, (after, follow), incoming, bare=bare)
            items += more
        return tuple(items), led

    def _edges(self, block: str, after: str | None, exits: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
        """Give what leaves a block, first tested first: what is written, else what its place in a path implies."""
        own = list(self.leaving.get(block, ()))
        written = {edge.target for edge in own}
        if after is not None:
            if after not in written:
                own.append(_Edge(block, after, "", (), (0, len(self.recipe.transitions)), ()))
        else:
            own += [edge for edge in exits if edge.numbers or edge.target not in written]
        return tuple(sorted(own, key=lambda edge: edge.rank))

    def _block(
        self,
        block: str,
        edges: tuple[_Edge, ...],
        ways: tuple[str | None, str | None],
        incoming: tuple[_Edge, ...] | None,
        *,
        bare: bool,
    ) -> tuple[Sequence, bool, tuple[_Edge, ...] | None]:
        """Read a block and what leaves it; tell whether it leads on, and which transitions the next block draws.

        `ways` are the block that comes next, if any, and the one that comes after the whole sequence.
        """
        after, follow = ways
        down = after or follow
        branch = self.branches.get(block)
        handed_on = edges if after and self._meets(after, edges) else None
        if branch is None:
            items: Sequence = (self._step(block),)
        elif branch.type is BranchType.SIMULTANEOUS:
            items = (Fork(block, branch.type, tuple(self._simultaneous_leg(branch, path) for path in branch.branches)),)
        else:
            pushed = len(edges) == 1 and edges[0].target == down and not edges[0].door and not bare
            exits = edges if pushed and handed_on is None else ()
            fork = self._selection(branch, incoming, exits, down if exits else None)
            if exits:
                return (fork,), any(leg.open for leg in fork.legs), None
            items = (fork,)
        if handed_on is not None:
            return items, True, handed_on
        leaving, led = self._exits(edges, down, bare=bare, inline=block in self.joins.blocks)
        return items + leaving, led, None

    def _step(self, name: str) -> StepBlock:
        return StepBlock(name, self.steps[name].initial, tuple(self.actions.get(name, ())))

    def _meets(self, after: str, edges: tuple[_Edge, ...]) -> bool:
        """Tell whether transitions to a selection are drawn together with those that choose its path."""
        branch = self.branches.get(after)
        if branch is None or branch.type is not BranchType.SELECTION:
            return False
        here = {number for edge in edges for number in edge.numbers}
        alone = self.aimed_at.get(after, set()) <= here
        # A jump to the selection must find there what concerns it and nothing else.
        plain = all(edge.target == after and not edge.door and _text(edge.conditions) == "TRUE" for edge in edges)
        others = [edge.target for edge in edges if edge.target != after]
        return (alone or plain) and all(target in self.placed or target in self.around for target in others)

    def _simultaneous_leg(self, branch: Branch, path: tuple[str, ...]) -> Leg:
        written = [edge for edge in self.entering.get(branch.name, ()) if self._door_of(path, edge.target)]
        entries = _ranked([replace(edge, target=path[0], door=_door(path, edge.target)) for edge in written])
        if not entries:
            items, led = self._path(path, (), None, None)
            return Leg(items, led)
        return self._entered(path, entries, _orders(entries), ((), None))

    def _door_of(self, path: tuple[str, ...], name: str) -> bool:
        return name in self.structure.heads(path[0])

    def _entered(
        self,
        path: tuple[str, ...],
        entries: list[_Edge],
        orders: dict[tuple[int, ...], int],
        ending: tuple[tuple[_Edge, ...], str | None],
    ) -> Leg:
        """Read a path below the transitions into it, which the selection it begins with may draw itself."""
        exits, follow = ending
        if entries and self._meets(path[0], tuple(entries)):
            return Leg(*self._path(path, exits, follow, tuple(entries)))
        items, led = self._path(path, exits, follow, None)
        legs = [
            self._jump(edge, orders[edge.rank])
            if edge.door
            else Leg((_transition_bar(edge, orders[edge.rank]),), open=True)
            for edge in entries
        ]
        if not any(leg.open for leg in legs):
            # Nothing but jumps: the path stands beside them.
            beside = Leg(items, led, entered=False)
            return Leg((Fork("", BranchType.SELECTION, (*legs, beside)),), led) if legs else beside
        head = legs[0].items if len(legs) == 1 else (Fork("", BranchType.SELECTION, tuple(legs)),)
        return Leg(head + items, led)

    def _selection(
        self, branch: Branch, incoming: tuple[_Edge, ...] | None, exits: tuple[_Edge, ...], follow: str | None
    ) -> Fork:
        """Read a selection; `incoming` are the transitions to draw with it, None when they are drawn already."""
        if incoming is None:
            incoming = (_Edge("", branch.name, "", (), (), ()),)
        into: dict[int, list[_Edge]] = {number: [] for number in range(len(branch.branches))}
        aside: list[_Edge] = []
        for edge in incoming:
            if edge.target == branch.name:
                for number, entry in self._enter(branch, edge):
                    into[number].append(entry)
            else:
                aside.append(edge)
        orders = _orders([*aside, *(edge for edges in into.values() for edge in edges)])
        legs = [(edge.rank, self._jump(edge, orders[edge.rank])) for edge in aside]
        for number, path in enumerate(branch.branches):
            edges = _ranked(into[number])
            rank = edges[0].rank if edges else (len(self.recipe.transitions), number)
            legs.append((rank, self._entered(path, edges, orders, (exits, follow))))
        legs.sort(key=lambda leg: leg[0])
        return Fork(branch.name, branch.type, tuple(leg for _, leg in legs))

    def _enter(self, branch: Branch, edge: _Edge) -> list[tuple[int, _Edge]]:
        """Give the paths a transition may take into a selection, each joined with what chooses the path."""
        found = []
        for number, path in enumerate(branch.branches):
            if edge.door:
                if self._door_of(path, edge.door):
                    found.append((number, replace(edge, target=path[0], door=_door(path, edge.door))))
                continue
            choosing = [each for each in self.entering.get(branch.name, ()) if self._door_of(path, each.target)]
            if not choosing:
                rank = (*edge.rank, 0, len(self.recipe.transitions) + number)
                found.append((number, replace(edge, target=path[0], rank=rank)))
            found += [
                (
                    number,
                    _Edge(
                        edge.source,
                        path[0],
                        _door(path, each.target),
                        edge.conditions + each.conditions,
                        edge.rank + each.rank,
                        edge.numbers + each.numbers,
                    ),
                )
                for each in choosing
            ]
        return found

    def _exits(self, edges: tuple[_Edge, ...], down: str | None, *, bare: bool, inline: bool) -> tuple[Sequence, bool]:
        """Read what leaves a block; `down` is where the sequence goes on, `bare` that it does so by itself as well."""
        if not edges:
            return (), bare
        single = len(edges) == 1 and not bare
        legs = []
        for order, edge in enumerate(edges, 1):
            number = 0 if len(edges) == 1 else order
            if edge.target == down and not edge.door:
                legs.append(Leg((_transition_bar(edge, number),), open=True))
            elif inline and not edge.door and self._free(edge.target) and self.joins.stands_inline(edge.target):
                items, led = self._chain(edge.target, down, None)
                legs.append(Leg((_transition_bar(edge, number), *items), led))
            else:
                legs.append(self._jump(edge, number))
        if single:
            return legs[0].items, legs[0].open
        if bare:
            legs.append(Leg((), open=True))
        return (Fork("", BranchType.SELECTION, tuple(legs)),), any(leg.open for leg in legs)

    def _free(self, name: str) -> bool:
        return name not in self.placed and name not in self.pending

    def _jump(self, edge: _Edge, order: int) -> Leg:
        target = edge.door or edge.target
        self.arrivals.setdefault(target, []).append(edge.source)
        return Leg((_transition_bar(edge, order), Jump(target)), open=False)


def _door(path: tuple[str, ...], name: str) -> str:
    return "" if path[0] == name else name


def _ranked(edges: list[_Edge]) -> list[_Edge]:
    return sorted(edges, key=lambda edge: edge.rank)


def _orders(edges: list[_Edge]) -> dict[tuple[int, ...], int]:
    """Number transitions by rank, which no two of them share; one alone has no number."""
    ranks = sorted(edge.rank for edge in edges)
    return {rank: number if len(ranks) > 1 else 0 for number, rank in enumerate(ranks, 1)}


def _transition_bar(edge: _Edge, order: int = 0) -> TransitionBar:
    return TransitionBar(_text(edge.conditions), edge.numbers, order)


def _text(conditions: tuple[str, ...]) -> str:
    """Give conditions as one text, constant ones as the literals of the standard, TRUE and FALSE."""
    texts = [_CONSTANTS.get(text.strip(), text.strip()) for text in conditions]
    telling = [text for text in texts if text != "TRUE"]
    if len(telling) == 1:
        return telling[0]
    return " and ".join(text if text.isidentifier() else f"({text})" for text in telling) or "TRUE"
