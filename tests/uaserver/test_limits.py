"""Limits that fit each other."""

from edge.uaserver import limits


def test_a_message_is_what_its_chunks_hold() -> None:
    transport = limits.transport()
    assert transport.max_message_size == transport.max_chunk_count * transport.max_recv_buffer
    assert transport.max_message_size < 5 * 1024 * 1024


def test_every_service_has_a_limit() -> None:
    assert all(0 < most <= 1000 for most in limits.OPERATIONS.values())
