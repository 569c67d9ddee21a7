"""The elements of an IEC 61131-3 chart: steps, transitions, divergences and jumps, nested.

They define the content of the drawing, not the positions.
"""

from dataclasses import dataclass
from typing import TypeAlias

from edge.model.recipe import Action, BranchType


@dataclass(frozen=True, slots=True)
class StepBlock:
    """A step and its actions, each with its number in the recipe, and the locks that it needs."""

    name: str
    initial: bool
    actions: tuple[tuple[int, Action], ...]
    locks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TransitionBar:
    """A transition: its condition, the numbers of the recipe transitions that it represents, and its test order.

    `order` counts from 1 among the transitions of one divergence; it is 0 where there is no choice.
    """

    condition: str
    numbers: tuple[int, ...]
    order: int = 0


@dataclass(frozen=True, slots=True)
class Jump:
    """An arrow to a step or branch that is drawn elsewhere."""

    target: str


@dataclass(frozen=True, slots=True)
class Leg:
    """One path of a fork; `entered` if it starts at the divergence, `open` if it leads to the convergence."""

    items: "Sequence"
    open: bool
    entered: bool = True


@dataclass(frozen=True, slots=True)
class Fork:
    """A divergence and the convergence of its open legs; the name is empty if it is not a branch of the recipe."""

    name: str
    type: BranchType
    legs: tuple[Leg, ...]


Item: TypeAlias = StepBlock | TransitionBar | Jump | Fork
Sequence: TypeAlias = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A recipe as pieces: the first one holds the initial step, the others are reached only by jumps.

    `arrivals` are the steps and branches from which jumps arrive, by target.
    """

    pieces: tuple[Sequence, ...]
    arrivals: dict[str, tuple[str, ...]]
