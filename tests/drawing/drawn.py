"""Reads back from a chart what it shows: its steps, and the transitions between them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from edge.drawing.reading import Chart, Fork, Item, Jump, Sequence, StepBlock, TransitionBar
from edge.model.recipe import BranchType, Recipe

Names = frozenset[str]
DrawnTransition = tuple[Names, Names, tuple[str, ...]]
"""Sources, targets and the written conditions of a transition."""


def items_of(sequences: Iterable[Sequence]) -> Iterator[Item]:
    """Yield every item of a chart."""
    for sequence in sequences:
        for item in sequence:
            yield item
            if isinstance(item, Fork):
                yield from items_of(leg.items for leg in item.legs)


def written(conditions: Iterable[str]) -> tuple[str, ...]:
    """Return conditions without those that change nothing, in an order of no meaning."""
    return tuple(sorted(text for text in conditions if text != "always"))


def drawn_transitions(chart: Chart, recipe: Recipe) -> set[DrawnTransition]:
    """Return the transitions a reader of the chart sees between its steps."""
    reader = _Reader(recipe)
    for piece in chart.pieces:
        reader.take(piece, None)
    return reader.read()


@dataclass
class _Place:
    """A sequence and where it stands: the fork around it with its own place and index, and the number of the leg."""

    items: Sequence
    around: tuple["_Place", int, int] | None


@dataclass
class _Reader:
    recipe: Recipe
    depth: int = 0
    named: dict[str, tuple[_Place, int]] = field(default_factory=dict)
    joins: list[tuple[int, _Place, int]] = field(default_factory=list)
    tails: dict[tuple[int, int, int], list[Names]] = field(default_factory=dict)
    legs: dict[tuple[int, int, int], _Place] = field(default_factory=dict)
    places: list[_Place] = field(default_factory=list)
    found: set[DrawnTransition] = field(default_factory=set)

    def take(self, items: Sequence, around: tuple[_Place, int, int] | None) -> None:
        place = _Place(items, around)
        self.places.append(place)
        if around is not None:
            self.legs[id(around[0]), around[1], around[2]] = place
        for at, item in enumerate(items):
            if isinstance(item, StepBlock):
                self.named[item.name] = (place, at)
            if isinstance(item, Fork):
                if item.name:
                    self.named[item.name] = (place, at)
                if item.type is BranchType.SIMULTANEOUS:
                    self.joins.append((self.depth, place, at))
                self.depth += 1
                for number, leg in enumerate(item.legs):
                    self.take(leg.items, (place, at, number))
                self.depth -= 1

    def read(self) -> set[DrawnTransition]:
        for place, at in list(self.named.values()):
            item = place.items[at]
            if isinstance(item, StepBlock):
                self.leave(frozenset({item.name}), place, at + 1)
        for _, place, at in sorted(self.joins, key=lambda join: -join[0]):
            fork = place.items[at]
            assert isinstance(fork, Fork)
            ends = [self.tails.get((id(place), at, number), []) for number in range(len(fork.legs))]
            for chosen in product(*ends):
                self.leave(frozenset().union(*chosen), place, at + 1)
        return self.found

    def leave(self, sources: Names, place: _Place, at: int) -> None:
        """Follow the line out of steps until its transitions."""
        if at == len(place.items):
            if place.around is None:
                return
            outer, index, number = place.around
            fork = outer.items[index]
            assert isinstance(fork, Fork)
            assert fork.legs[number].open or not place.items or len(place.items) == at
            if not fork.legs[number].open:
                return
            if fork.type is BranchType.SELECTION:
                self.leave(sources, outer, index + 1)
            else:
                self.tails.setdefault((id(outer), index, number), []).append(sources)
            return
        item = place.items[at]
        if isinstance(item, TransitionBar):
            for targets, numbers in self.arrive(place, at + 1):
                texts = (self.recipe.transitions[number].condition for number in (*item.numbers, *numbers))
                self.found.add((sources, targets, written(texts)))
            return
        assert isinstance(item, Fork)
        assert item.type is BranchType.SELECTION
        for number, leg in enumerate(item.legs):
            if leg.entered:
                self.leave(sources, self.legs[id(place), at, number], 0)

    def arrive(self, place: _Place, at: int) -> Iterator[tuple[Names, tuple[int, ...]]]:
        """Follow the line from a transition to the steps it activates, with the transitions it passes on its way."""
        if at == len(place.items):
            assert place.around is not None
            outer, index, number = place.around
            fork = outer.items[index]
            assert isinstance(fork, Fork)
            assert fork.type is BranchType.SELECTION
            assert fork.legs[number].open
            yield from self.arrive(outer, index + 1)
            return
        item = place.items[at]
        match item:
            case StepBlock():
                yield frozenset({item.name}), ()
            case Jump():
                yield from self.arrive(*self.named[item.target])
            case TransitionBar():
                for targets, numbers in self.arrive(place, at + 1):
                    yield targets, (*item.numbers, *numbers)
            case Fork():
                entered = [
                    list(self.arrive(self.legs[id(place), at, number], 0))
                    for number, leg in enumerate(item.legs)
                    if leg.entered
                ]
                if item.type is BranchType.SELECTION:
                    for ways in entered:
                        yield from ways
                else:
                    for chosen in product(*entered):
                        names = frozenset().union(*(targets for targets, _ in chosen))
                        yield names, tuple(number for _, numbers in chosen for number in numbers)
