"""The cause of a failed connection is found in nested groups; messages of devices are bounded."""

from edge.equipment.device import bounded_message, root_cause
from edge.foundation.errors import Refused, Unavailable


def test_unexpected_error_takes_precedence_over_a_lost_connection() -> None:
    defect = KeyError("x")
    assert root_cause(ExceptionGroup("a", [Unavailable("lost"), ExceptionGroup("b", [defect])])) is defect
    lost = Unavailable("lost")
    assert root_cause(ExceptionGroup("a", [lost])) is lost


def test_device_message_is_truncated_and_encodable() -> None:
    assert bounded_message(Refused("device", "x" * 600)) == "x" * 500 + "…"
    assert bounded_message(Refused("device", "\udc80")) == "?"
