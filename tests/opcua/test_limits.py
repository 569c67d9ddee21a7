"""The limits are consistent with each other."""

from edge.opcua import limits
from edge.opcua.negotiated_limits import NegotiatedLimits


def test_message_limit_equals_chunk_count_times_chunk_size() -> None:
    agreed = NegotiatedLimits()
    assert agreed.max_message_size == agreed.max_chunk_count * agreed.max_recv_buffer


def test_request_limit_is_far_below_the_response_limit() -> None:
    assert limits.REQUEST_BYTES < 5 * 1024 * 1024 < 16 * 1000 * 1000 < limits.MESSAGE_BYTES


def test_every_service_has_a_limit() -> None:
    assert all(0 < most <= 1000 for most in limits.DEFAULTS.operations.values())
