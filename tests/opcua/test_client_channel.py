"""A message of a server beyond the size limit is skipped; the channel keeps its sequence and stays open."""

import pytest
from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.common.utils import Buffer
from asyncua.crypto.security_policies import SecurityPolicyNone
from asyncua.ua.ua_binary import header_from_binary, struct_to_binary

from edge.opcua.client_channel import BoundedChannel, MessageTooLargeError

LIMIT = 1000


class Channel:
    """A connection with this limit, and the server on its other side; `failed` holds the failed requests."""

    def __init__(self) -> None:
        self.failed: dict[int, ua.uaerrors.UaError] = {}
        self.connection = BoundedChannel(SecurityPolicyNone(), LIMIT, self.failed.__setitem__)
        self.number = 0

    def receive(self, request_id: int, *parts: bytes, last: ua.ChunkType = ua.ChunkType.Single) -> bytes | None:
        """Return the body of the message that these chunks form; None without one."""
        message = None
        for index, part in enumerate(parts):
            kind = last if index == len(parts) - 1 else ua.ChunkType.Intermediate
            chunk = MessageChunk(SecurityPolicyNone().symmetric_cryptography, part, chunk_type=kind)
            self.number += 1
            chunk.SequenceHeader.SequenceNumber, chunk.SequenceHeader.RequestId = self.number, request_id
            data = Buffer(chunk.to_binary())
            message = self.connection.receive_from_header_and_body(header_from_binary(data), data)
        return bytes(message.body()) if message else None


@pytest.mark.parametrize("parts", [(bytes(LIMIT),), (bytes(LIMIT - 1), b"x"), (b"", b"")])
def test_message_of_the_allowed_size_is_received(parts: tuple[bytes, ...]) -> None:
    channel = Channel()
    assert channel.receive(1, *parts) == b"".join(parts)
    assert channel.failed == {}


@pytest.mark.parametrize("parts", [(bytes(LIMIT + 1),), (bytes(LIMIT), b"x"), (bytes(900),) * 1000])
def test_message_beyond_the_limit_fails_its_request_only(parts: tuple[bytes, ...]) -> None:
    channel = Channel()
    assert channel.receive(7, *parts) is None
    assert list(channel.failed) == [7]
    assert isinstance(channel.failed[7], MessageTooLargeError)
    assert str(channel.failed[7]) == (
        f"a message of {sum(map(len, parts))} bytes was skipped: max_message_bytes is {LIMIT}"
    )
    assert channel.receive(8, b"next") == b"next"


@pytest.mark.parametrize("before", [b"", bytes(2 * LIMIT)])
def test_request_of_an_aborted_message_fails_with_its_reason(before: bytes) -> None:
    """OPC 10000-6, 6.7.3: a server aborts a message that exceeds the limit of the client."""
    channel = Channel()
    error = ua.ErrorMessage(ua.StatusCode(ua.StatusCodes.BadResponseTooLarge), "too large")
    assert channel.receive(3, before, struct_to_binary(error), last=ua.ChunkType.Abort) is None
    assert isinstance(channel.failed[3], ua.uaerrors.BadResponseTooLarge)
    assert channel.receive(4, b"next") == b"next"
