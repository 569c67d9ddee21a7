"""Errors name the message and the reason, in words where the specification has one."""

from edge.features.openprotocol.protocol.errors import DeclinedError, UnansweredError
from edge.model.equipment_connection import ConnectionFault


def test_declined_message_is_named_with_its_reason() -> None:
    assert DeclinedError(64, 15).message == "MID 0064 declined: there is no such result"
    assert DeclinedError(43, 250).message == "MID 0043 declined: error 250"


def test_unanswered_message_is_a_silent_controller() -> None:
    error = UnansweredError(42, 5.0)
    assert (error.message, error.fault) == ("MID 0042: no answer within 5 s", ConnectionFault.SILENT)
