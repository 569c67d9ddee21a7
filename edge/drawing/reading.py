"""Reads a recipe as the elements of a chart, their content without positions: divides it into regions, and draws each.

A selection is drawn as in IEC 61131-3, with a transition at the head and at the end of each path. The transition into a
branch is combined with those that choose a path. The transition out of the branch is repeated at the end of every path.
Where a chart cannot be drawn without crossing lines, a jump names its target.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct

from edge.drawing.regions import Chain, Edge, Exit, PathRegion, Region, read_regions
from edge.model.recipe import Action, BranchType, Recipe, Step


class StepBlock(Struct, frozen=True):
    """A step and its actions, each with its number in the recipe, and the locks that it needs."""

    name: str
    initial: bool
    actions: tuple[tuple[int, Action], ...]
    locks: tuple[str, ...] = ()


class TransitionBar(Struct, frozen=True):
    """A transition: its condition, the numbers of the recipe transitions that it represents, and its test order.

    `order` counts from 1 among the transitions of one divergence; it is 0 where there is no choice. Without numbers
    it is implied, and leads from `source` to `target`.
    """

    condition: str
    numbers: tuple[int, ...]
    order: int = 0
    source: str = ""
    target: str = ""


class Jump(Struct, frozen=True):
    """An arrow to a step or branch that is drawn elsewhere."""

    target: str


class Leg(Struct, frozen=True):
    """One path of a fork; `entered` if it starts at the divergence, `open` if it leads to the convergence."""

    items: "Sequence"
    open: bool
    entered: bool = True


class Fork(Struct, frozen=True):
    """A divergence and the convergence of its open legs; the name is empty if it is not a branch of the recipe."""

    name: str
    type: BranchType
    legs: tuple[Leg, ...]


Item: TypeAlias = StepBlock | TransitionBar | Jump | Fork
Sequence: TypeAlias = tuple[Item, ...]


class Chart(Struct, frozen=True):
    """A recipe as pieces: the first one holds the initial step, the others are reached only by jumps.

    `arrivals` maps each target of a jump to the steps and branches that jump to it.
    """

    pieces: tuple[Sequence, ...]
    arrivals: dict[str, tuple[str, ...]]


_CONSTANTS: Final = {"always": "TRUE", "true": "TRUE", "never": "FALSE", "false": "FALSE"}
_Orders: TypeAlias = dict[tuple[int, ...], int]
"""The test order of a transition within its divergence, by its rank; 0 without alternatives."""


def read_chart(recipe: Recipe) -> Chart:
    """Return the chart of a recipe without shape faults (`edge.sfc.check`)."""
    artist = _Artist(recipe)
    pieces = tuple(artist.sequence(chain) for chain in read_regions(recipe))
    return Chart(pieces, {target: tuple(sources) for target, sources in artist.arrivals.items()})


class _Artist:
    """Draws regions as elements, and records the sources of jumps."""

    def __init__(self, recipe: Recipe) -> None:
        self._transitions = len(recipe.transitions)
        self._branches = {branch.name: branch for branch in recipe.branches}
        self._steps = {step.name: step for step in recipe.steps}
        self._actions: dict[str, list[tuple[int, Action]]] = {}
        for number, action in enumerate(recipe.actions):
            self._actions.setdefault(action.step, []).append((number, action))
        self._around = {name: branch for branch in recipe.branches for path in branch.branches for name in path}
        self.arrivals: dict[str, list[str]] = {}

    def sequence(self, chain: Chain) -> Sequence:
        """Return the elements of a chain."""
        return tuple(item for region in chain.regions for item in (self._block(region), *self._exits(region)))

    def _block(self, region: Region) -> Item:
        branch = self._branches.get(region.block)
        if branch is None:
            step = self._steps[region.block]
            actions = tuple(self._actions.get(step.name, ()))
            return StepBlock(step.name, step.initial, actions, tuple(sorted(self._locks(step))))
        if branch.type is BranchType.SIMULTANEOUS:
            legs = tuple(self._simultaneous_leg(path) for path in region.paths)
        else:
            legs = self._selection_legs(region)
        return Fork(branch.name, branch.type, legs)

    def _locks(self, step: Step) -> set[str]:
        """Return the locks of a step and of the branches around it."""
        found, name = set(step.lock), step.name
        while branch := self._around.get(name):
            found |= set(branch.lock)
            name = branch.name
        return found

    def _simultaneous_leg(self, path: PathRegion) -> Leg:
        if not path.entries:
            return Leg(self.sequence(path.chain), path.chain.leads_on)
        return self._entered_leg(path, _orders(path.entries))

    def _selection_legs(self, region: Region) -> tuple[Leg, ...]:
        orders = _orders([*region.aside, *(edge for path in region.paths for edge in path.entries)])
        legs = [(edge.rank, self._jump(edge, orders[edge.rank])) for edge in region.aside]
        for number, path in enumerate(region.paths):
            rank = path.entries[0].rank if path.entries else (self._transitions, number)
            legs.append((rank, self._entered_leg(path, orders)))
        legs.sort(key=lambda leg: leg[0])
        return tuple(leg for _, leg in legs)

    def _entered_leg(self, path: PathRegion, orders: _Orders) -> Leg:
        """Return a path below the transitions into it, which the selection it begins with may draw itself."""
        items, leads_on = self.sequence(path.chain), path.chain.leads_on
        if path.first_draws:
            return Leg(items, leads_on)
        legs = [
            self._jump(edge, orders[edge.rank])
            if edge.door
            else Leg((_transition_bar(edge, orders[edge.rank]),), open=True)
            for edge in path.entries
        ]
        if not any(leg.open for leg in legs):
            # Nothing but jumps: the path stands next to them.
            alone = Leg(items, leads_on, entered=False)
            return Leg((Fork("", BranchType.SELECTION, (*legs, alone)),), leads_on) if legs else alone
        head = legs[0].items if len(legs) == 1 else (Fork("", BranchType.SELECTION, tuple(legs)),)
        return Leg(head + items, leads_on)

    def _exits(self, region: Region) -> Sequence:
        """Return what leaves a block: one transition, or a divergence."""
        exits = region.exits
        if not exits:
            return ()
        legs = [self._exit(item, number if len(exits) > 1 else 0) for number, item in enumerate(exits, 1)]
        if len(legs) == 1 and not region.continues:
            return legs[0].items
        if region.continues:
            legs.append(Leg((), open=True))
        return (Fork("", BranchType.SELECTION, tuple(legs)),)

    def _exit(self, leaving: Exit, order: int) -> Leg:
        if leaving.down:
            return Leg((_transition_bar(leaving.edge, order),), open=True)
        if leaving.inline is not None:
            items = self.sequence(leaving.inline)
            return Leg((_transition_bar(leaving.edge, order), *items), leaving.inline.leads_on)
        return self._jump(leaving.edge, order)

    def _jump(self, edge: Edge, order: int) -> Leg:
        target = edge.door or edge.target
        self.arrivals.setdefault(target, []).append(edge.source)
        return Leg((_transition_bar(edge, order), Jump(target)), open=False)


def _orders(edges: Iterable[Edge]) -> _Orders:
    """Return the numbers of transitions by rank, which no two of them share; a single one has no number."""
    ranks = sorted(edge.rank for edge in edges)
    return {rank: number if len(ranks) > 1 else 0 for number, rank in enumerate(ranks, 1)}


def _transition_bar(edge: Edge, order: int) -> TransitionBar:
    return TransitionBar(_text(edge.conditions), edge.numbers, order, edge.source, edge.door or edge.target)


def _text(conditions: tuple[str, ...]) -> str:
    """Return conditions as one text, constant ones as the literals of the standard, TRUE and FALSE."""
    texts = [_CONSTANTS.get(text.strip(), text.strip()) for text in conditions]
    meaningful = [text for text in texts if text != "TRUE"]
    if len(meaningful) == 1:
        return meaningful[0]
    return " and ".join(text if text.isidentifier() else f"({text})" for text in meaningful) or "TRUE"
