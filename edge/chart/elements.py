"""The elements of an IEC 61131-3 chart: steps, transitions, divergences and jumps, nested.

They define the content of the drawing, not the positions.
"""

from typing import TypeAlias

from msgspec import Struct

from edge.model.recipe import Action, BranchType


class StepBlock(Struct, frozen=True):
    """A step and its actions, each with its number in the recipe, and the locks that it needs."""

    name: str
    initial: bool
    actions: tuple[tuple[int, Action], ...]
    locks: tuple[str, ...] = ()


class TransitionBar(Struct, frozen=True):
    """A transition: its condition, the numbers of the recipe transitions that it represents, and its test order.

    `order` counts from 1 among the transitions of one divergence; it is 0 where there is no choice.
    """

    condition: str
    numbers: tuple[int, ...]
    order: int = 0


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
