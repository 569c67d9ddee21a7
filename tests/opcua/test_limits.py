"""The limits are consistent with each other."""

import math

import pytest
from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.common.utils import ServiceError
from asyncua.crypto.security_policies import Cryptography, EncryptorAesCbc, SecurityPolicyNone, SignerHMac256

from edge.opcua import limits
from edge.opcua.limits import (
    CHUNK_BYTES,
    CHUNKS,
    MESSAGE_BYTES,
    NegotiatedLimits,
    check_count,
    clamp,
)


def test_message_limit_equals_chunk_count_times_chunk_size() -> None:
    agreed = NegotiatedLimits()
    assert agreed.max_message_size == agreed.max_chunk_count * agreed.max_recv_buffer


def test_request_limit_is_far_below_the_response_limit() -> None:
    assert limits.REQUEST_BYTES < 5 * 1024 * 1024 < 16 * 1000 * 1000 < limits.MESSAGE_BYTES


def test_every_service_has_a_limit() -> None:
    assert all(0 < most <= 1000 for most in limits.DEFAULTS.operations.values())


def hello(receive: int = CHUNK_BYTES, send: int = CHUNK_BYTES, message: int = 0, chunks: int = 0) -> ua.Hello:
    return ua.Hello(ReceiveBufferSize=receive, SendBufferSize=send, MaxMessageSize=message, MaxChunkCount=chunks)


def test_acknowledge_contains_the_buffer_sizes_of_both_sides() -> None:
    # asyncua answers 8192 and 65535 here; `NegotiatedLimits` can be reduced when that is fixed.
    answer = NegotiatedLimits().create_acknowledge_and_set_limits(hello(receive=8192))
    assert (answer.ReceiveBufferSize, answer.SendBufferSize) == (CHUNK_BYTES, 8192)
    assert (answer.MaxMessageSize, answer.MaxChunkCount) == (MESSAGE_BYTES, CHUNKS)


def test_the_receive_limit_of_a_client_does_not_limit_its_requests() -> None:
    agreed = NegotiatedLimits()
    agreed.create_acknowledge_and_set_limits(hello(message=10_000, chunks=1))
    assert agreed.is_msg_size_within_limit(1_000_000)
    assert agreed.is_chunk_count_within_limit(20)


def policy(*, is_encrypted: bool) -> SecurityPolicyNone:
    made = SecurityPolicyNone()
    if is_encrypted:
        made.symmetric_cryptography = Cryptography(ua.MessageSecurityMode.SignAndEncrypt)
        made.symmetric_cryptography.Signer = SignerHMac256(bytes(32))
        made.symmetric_cryptography.Encryptor = EncryptorAesCbc(bytes(32), bytes(16))
    return made


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize(
    ("takes", "most_bytes", "most_chunks"),
    [
        (hello(receive=8192, message=8192), 8192, CHUNKS),
        (hello(receive=8192, message=50_000), 50_000, CHUNKS),
        (hello(message=65_536), 65_536, CHUNKS),
        (hello(receive=8192, chunks=3), MESSAGE_BYTES, 3),
        (hello(receive=8192, message=8192, chunks=3), 8192, 3),
        (hello(), MESSAGE_BYTES, CHUNKS),
    ],
)
def test_largest_response_fits_the_limits_of_the_client(
    takes: ua.Hello, most_bytes: int, most_chunks: int, *, is_encrypted: bool
) -> None:
    agreed = NegotiatedLimits()
    agreed.create_acknowledge_and_set_limits(takes)
    used = policy(is_encrypted=is_encrypted)
    largest = agreed.largest_answer(used.symmetric_cryptography)
    chunks = MessageChunk.message_to_chunks(used, bytes(largest), agreed.max_send_buffer)
    for chunk in chunks:
        chunk.SequenceHeader.SequenceNumber = 1
    sizes = [len(chunk.to_binary()) for chunk in chunks]
    assert len(chunks) <= most_chunks
    assert max(sizes) <= takes.ReceiveBufferSize
    assert sum(sizes) <= most_bytes
    assert largest > min(most_bytes, most_chunks * takes.ReceiveBufferSize) * 0.97


@pytest.mark.parametrize(
    ("count", "code"), [(0, ua.StatusCodes.BadNothingToDo), (1001, ua.StatusCodes.BadTooManyOperations)]
)
def test_requests_with_too_few_or_many_operations_are_refused(count: int, code: int) -> None:
    with pytest.raises(ServiceError) as caught:
        check_count(1000, [None] * count)
    assert caught.value.code == code
    check_count(1000, [None] * 1000)


@pytest.mark.parametrize(("asked", "clamped"), [(5.0, 5.0), (0.0, 1.0), (99.0, 9.0), (math.nan, 1.0), (math.inf, 9.0)])
def test_numbers_are_clamped_to_their_bounds(asked: float, clamped: float) -> None:
    assert clamp(asked, 1.0, 9.0) == clamped
