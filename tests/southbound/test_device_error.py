"""The cause of a failed connection is found in nested groups; messages of devices are bounded."""

from edge.errors import Refused, Unavailable
from edge.southbound.device_error import bounded_message, root_cause


def test_unexpected_error_is_the_cause_before_a_lost_connection() -> None:
    defect = KeyError("x")
    assert root_cause(ExceptionGroup("a", [Unavailable("lost"), ExceptionGroup("b", [defect])])) is defect
    lost = Unavailable("lost")
    assert root_cause(ExceptionGroup("a", [lost])) is lost


def test_message_of_a_device_is_cut_and_can_be_encoded() -> None:
    assert bounded_message(Refused("device", "x" * 600)) == "x" * 500 + "…"
    assert bounded_message(Refused("device", "\udc80")) == "?"
