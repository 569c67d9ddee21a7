"""Checks that the chunks of a channel arrive as their sender numbered them, for server and client.

asyncua keeps the place of a message in private members of its channel.

    order.check(chunk, channel_id)
"""

from asyncua import ua
from asyncua.common.connection import MessageChunk

LAST_SEQUENCE_NUMBER = (1 << 32) - 1025
"""Numbers wrap before so many are left (OPC 10000-6, 6.7.2.4)."""

_FIRST_NUMBERS = 1024
"""A number below it may follow one of the last."""


class ChunkOrder:
    """The place in the chunks of one peer."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._request: int | None = None
        """The request whose message is not complete."""

    def check(self, chunk: MessageChunk, channel_id: int) -> None:
        """Check the next chunk of a channel. Raises BadSecurityChecksFailed for one that is not the next."""
        header, sequence = chunk.MessageHeader, chunk.SequenceHeader
        is_foreign = header.MessageType != ua.MessageType.SecureOpen and header.ChannelId != channel_id
        is_mixed = self._request not in {None, sequence.RequestId}
        if is_foreign or is_mixed or not self._is_next(sequence.SequenceNumber):
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)
        self._number = sequence.SequenceNumber
        self._request = sequence.RequestId if header.ChunkType == ua.ChunkType.Intermediate else None

    def _is_next(self, number: int) -> bool:
        last = self._number
        if last is None or number == last + 1:
            return True
        return number < _FIRST_NUMBERS and last >= LAST_SEQUENCE_NUMBER
