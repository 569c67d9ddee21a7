"""The meaning of each action qualifier at activation, in time and at deactivation, as a table."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from edge.model.recipe import Qualifier


class Moment(Enum):
    """A moment in the life of one activation of a step."""

    NEVER = auto()
    ACTIVATION = auto()
    DURATION = auto()
    """When the action's duration T has passed since the activation."""
    DEACTIVATION = auto()


class Leave(Enum):
    """The effect on an open action when its step is left."""

    STOP = auto()
    """A command without an answer is stopped; a delay or a wait is dropped."""
    CANCEL_DELAY = auto()
    """A delay is dropped; a command stays."""
    KEEP = auto()
    """The action is kept."""


class QualifierRule(Struct, frozen=True):
    """One line of the table.

    `sends` is when the command goes out (or the wait is armed), `stores` when the action is set until R, `ends` whether
    it is over when T has passed, `holds` whether the step waits for it.
    """

    sends: Moment
    stores: Moment = Moment.NEVER
    leave: Leave = Leave.KEEP
    ends: bool = False
    holds: bool = True
    resets: bool = False

    @property
    def timed(self) -> bool:
        """Return whether the qualifier needs a duration."""
        return self.ends or self.sends is Moment.DURATION

    @property
    def stored(self) -> bool:
        """Return whether the qualifier sets the action until R."""
        return self.stores is not Moment.NEVER


QUALIFIER_RULES: Final[dict[Qualifier, QualifierRule]] = {
    Qualifier.N: QualifierRule(sends=Moment.ACTIVATION, leave=Leave.STOP),
    Qualifier.P: QualifierRule(sends=Moment.ACTIVATION),
    Qualifier.P1: QualifierRule(sends=Moment.ACTIVATION),
    Qualifier.P0: QualifierRule(sends=Moment.DEACTIVATION, holds=False),
    Qualifier.S: QualifierRule(sends=Moment.ACTIVATION, stores=Moment.ACTIVATION),
    Qualifier.R: QualifierRule(sends=Moment.ACTIVATION, resets=True),
    Qualifier.L: QualifierRule(sends=Moment.ACTIVATION, leave=Leave.STOP, ends=True),
    Qualifier.D: QualifierRule(sends=Moment.DURATION, leave=Leave.STOP),
    Qualifier.SD: QualifierRule(sends=Moment.DURATION, stores=Moment.ACTIVATION, holds=False),
    Qualifier.DS: QualifierRule(sends=Moment.DURATION, stores=Moment.DURATION, leave=Leave.CANCEL_DELAY),
    Qualifier.SL: QualifierRule(sends=Moment.ACTIVATION, stores=Moment.ACTIVATION, ends=True),
}
