"""The faults of a simulated tightening controller."""

from enum import Enum


class IjtFault(Enum):
    """The fault of the next joining."""

    NONE = "none"
    REFUSED = "refused"
    """The controller refuses the start."""
    SILENT = "silent"
    """The joining never ends."""
    NOK = "nok"
    """The torque is beyond the limit."""
    NOK_ONCE = "nok-once"
    """The torque of the next joining is beyond the limit, those after it are good."""
    ERROR_STATE = "error-state"
    """The controller reports an error instead of a result, and refuses joinings until a client enables it again."""
    UNTOLD = "untold"
    """The controller does not report the result, which leaves a gap in the sequence numbers."""
    DISCONNECT = "disconnect"
    """The joining ends while the controller is unreachable."""
    RESTART = "restart"
    """The power fails once: the joining is lost."""
    CUT = "cut"
    """The connection breaks once, between the start of the joining and the answer to the call."""
    SLOW = "slow"
    """The joining takes ten times as long."""
    UNSEEN = "unseen"
    """The joining ends without a report when a client reads the identifiers."""
