"""A message of a server beyond the size limit is skipped; the channel keeps its sequence and stays open."""

from datetime import UTC, datetime, timedelta

import pytest
from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.common.utils import Buffer
from asyncua.crypto.security_policies import SecurityPolicyNone
from asyncua.ua.ua_binary import header_from_binary, struct_to_binary

from edge.opcua.client_transport import BoundedChannel, MessageTooLargeError

LIMIT = 1000


class Channel:
    """A connection with this limit, and the server on its other side; `failed` holds the failed requests."""

    def __init__(self) -> None:
        self.failed: dict[int, ua.uaerrors.UaError] = {}
        self.connection = BoundedChannel(SecurityPolicyNone(), LIMIT, self.failed.__setitem__)
        self.number = 0

    def receive(
        self, request_id: int, *parts: bytes, last: ua.ChunkType = ua.ChunkType.Single, token_id: int = 0
    ) -> bytes | None:
        """Return the body of the message that these chunks form; None without one."""
        message = None
        for index, part in enumerate(parts):
            kind = last if index == len(parts) - 1 else ua.ChunkType.Intermediate
            chunk = MessageChunk(SecurityPolicyNone().symmetric_cryptography, part, chunk_type=kind)
            chunk.SecurityHeader = ua.SymmetricAlgorithmHeader(token_id)
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


def token(token_id: int, created_at: datetime) -> ua.OpenSecureChannelResult:
    """Return the answer of a server to the opening or the renewal of a channel."""
    return ua.OpenSecureChannelResult(
        SecurityToken=ua.ChannelSecurityToken(TokenId=token_id, CreatedAt=created_at, RevisedLifetime=60_000)
    )


@pytest.mark.parametrize("behind", [timedelta(0), timedelta(hours=1), timedelta(days=20_000)])
def test_answer_with_the_token_before_is_taken_if_the_clock_is_behind(behind: timedelta) -> None:
    """A server answers a Publish request with the token of the request, also after a renewal (OPC 10000-4, 5.5.2)."""
    channel = Channel()
    created_at = datetime.now(UTC) - behind
    channel.connection.set_channel(token(1, created_at), ua.SecurityTokenRequestType.Issue, b"")
    channel.connection.set_channel(token(2, created_at), ua.SecurityTokenRequestType.Renew, b"")
    assert channel.receive(1, b"new", token_id=2) == b"new"
    assert channel.receive(2, b"before", token_id=1) == b"before"
    with pytest.raises(ua.UaError, match="Invalid security token id"):
        channel.receive(3, b"foreign", token_id=3)
