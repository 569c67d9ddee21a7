"""The secure channel of OPC UA clients: a message beyond the size limit is skipped, and the channel stays open."""

from collections.abc import Callable

from asyncua import ua
from asyncua.common.connection import MessageChunk, SecureConnection, TransportLimits
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.ua.ua_binary import struct_from_binary

# asyncua would apply the limits that the server has for our requests to its answers, too; 0 switches its check off.
_LIMITS = TransportLimits(65535, 65535, 0, 0)

TOO_LARGE = (
    ua.uaerrors.BadResponseTooLarge,
    ua.uaerrors.BadEncodingLimitsExceeded,
    ua.uaerrors.BadTcpMessageTooLarge,
)
"""The errors of a server whose answer exceeds the limit that we announce (OPC 10000-6, 6.7.3, 7.1.2.3)."""


class MessageTooLargeError(ua.uaerrors.UaStructParsingError):
    """A message of the server exceeds the size limit and was skipped; asyncua then publishes again at once."""


class BoundedChannel(SecureConnection):
    """A channel that keeps at most `message_bytes` of a message; `fail` ends a request without an answer."""

    def __init__(
        self, policy: SecurityPolicy, message_bytes: int, fail: Callable[[int, ua.uaerrors.UaError], None]
    ) -> None:
        super().__init__(policy, _LIMITS)
        self._message_bytes = message_bytes
        self._fail = fail
        self._body_bytes = 0

    def _check_sym_header(self, security_hdr: ua.SymmetricAlgorithmHeader) -> None:
        """Accept the token before the present one too, for as long as its keys are valid.

        asyncua compares our clock with that of the server, and ended the channel after a renewal where the latter was
        behind: the answer to a Publish request may have the token of the request. The keys expire by a clock that
        only goes on, and the signature is verified with them.
        """
        previous = self.prev_security_token.TokenId
        if previous == 0 or security_hdr.TokenId != previous:
            super()._check_sym_header(security_hdr)

    def _receive(self, msg: MessageChunk) -> ua.Message | None:
        """Return the message that a chunk completes; None when more follow, or when it is skipped or aborted."""
        self._check_incoming_chunk(msg)
        self._body_bytes += len(msg.Body)
        if self._body_bytes > self._message_bytes:
            self._drop_incoming_parts()
        else:
            self._incoming_parts.append(msg)
        if msg.MessageHeader.ChunkType == ua.ChunkType.Intermediate:
            return None
        parts, size, self._body_bytes = self._incoming_parts, self._body_bytes, 0
        self._drop_incoming_parts()
        if msg.MessageHeader.ChunkType == ua.ChunkType.Abort:
            # OPC 10000-6, 6.7.3: the request of an aborted message has failed, and the channel stays open.
            reason = struct_from_binary(ua.ErrorMessage, ua.utils.Buffer(msg.Body))
            self._fail(msg.SequenceHeader.RequestId, ua.uaerrors.UaStatusCodeError(reason.Error.value))
            return None
        if size > self._message_bytes:
            what = f"a message of {size} bytes was skipped: max_message_bytes is {self._message_bytes}"
            self._fail(msg.SequenceHeader.RequestId, MessageTooLargeError(what))
            return None
        return ua.Message(parts)
