"""The faults of a simulated tightening controller."""

from enum import Enum


class IjtFault(Enum):
    """What goes wrong with the next joining."""

    NONE = "none"
    REFUSED = "refused"
    """It cannot be started."""
    SILENT = "silent"
    """It never ends."""
    NOK = "nok"
    """Its torque is beyond the limit."""
    ERROR_STATE = "error-state"
    """The controller tells an error instead of a result, and takes nothing until it is enabled again."""
    UNTOLD = "untold"
    """Its result is not told, which leaves a gap in the sequence."""
    DISCONNECT = "disconnect"
    """It ends while nobody can reach the controller."""
    RESTART = "restart"
    """The power fails, once: what it was at is lost."""
    CUT = "cut"
    """The connection breaks, once, between its start and the confirmation of that."""
    SLOW = "slow"
    """It takes ten times as long."""
    UNSEEN = "unseen"
    """It ends, unreported, when a client asks for the identifiers."""
