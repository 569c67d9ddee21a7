"""The faults of a simulated Open Protocol controller."""

from enum import Enum


class OpenProtocolFault(Enum):
    """The fault of the next tightening."""

    NONE = "none"
    REFUSED = "refused"
    """The controller does not enable the tool."""
    SILENT = "silent"
    """The operator never triggers the tool."""
    NOK = "nok"
    """The torque is beyond the limit."""
    NOK_ONCE = "nok-once"
    """The torque of the next tightening is beyond the limit, those after it are good."""
    ALARM = "alarm"
    """The controller reports an alarm instead of a result, and disables the tool."""
    UNREPORTED = "unreported"
    """The controller stores the result and does not send it."""
    DISCONNECT = "disconnect"
    """The tightening ends while the controller is unreachable."""
    RESTART = "restart"
    """The power fails once: the tightening is lost."""
    SLOW = "slow"
    """The tightening takes ten times as long."""
