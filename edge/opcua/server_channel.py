"""A secure channel with an offered policy, to a trusted application, for its granted lifetime."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from asyncua import ua
from asyncua.common.connection import MessageChunk, SecureConnection
from asyncua.common.utils import Buffer
from asyncua.crypto.security_policies import SecurityPolicyFactory, SecurityPolicyNone
from asyncua.crypto.uacrypto import der_from_x509, x509_from_der
from cryptography import x509
from msgspec import Struct

from edge.opcua.access import AccessPolicy, Peer
from edge.opcua.answer_encoding import AnswerBody
from edge.opcua.application_certificate import application_uris, read_chain
from edge.opcua.limits import MOST_ENCRYPTED_BLOCKS

# The longest and the shortest lifetime of a key; a client renews it after three quarters of it.
_LONGEST_MS = 3_600_000
_SHORTEST_MS = 10_000
_GRACE = 1.25  # for what was sent before the new key arrived (OPC 10000-4, 5.5.2)

_SMALLEST_BUFFER = 8192  # of OPC 10000-6, 7.1.2.3

_LAST_SEQUENCE_NUMBER = (1 << 32) - 1025  # OPC 10000-6, 6.7.2.4: numbers wrap before this many are left

_DISCOVERY = SecurityPolicyFactory(SecurityPolicyNone, ua.MessageSecurityMode.None_)


class RequestKey(Struct, frozen=True):
    """What an answer repeats of its request: the handle of its header, and its number on the channel."""

    handle: int
    number: int


class FewBlocks:
    """The decryptor of an own key: few blocks, each once. asyncua decrypts again where a signature is wrong.

    Raises BadSecurityChecksFailed for more blocks, and for the same bytes again.
    """

    def __init__(self, decryptor: Any) -> None:
        self._decryptor = decryptor
        self._last = b""

    def decrypt(self, data: bytes) -> bytes:
        """Return the plain text."""
        if len(data) > MOST_ENCRYPTED_BLOCKS * self.encrypted_block_size() or data == self._last:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)
        self._last = data
        return bytes(self._decryptor.decrypt(data))

    def encrypted_block_size(self) -> int:
        """Return the size of a block in bytes."""
        return int(self._decryptor.encrypted_block_size())

    def plain_block_size(self) -> int:
        """Return the most bytes of plain text in a block."""
        return int(self._decryptor.plain_block_size())


class ServerChannel(SecureConnection):
    """asyncua's channel, which would open without security regardless of the offer, and would never expire."""

    _sequence_number: int
    security_policy: Any

    def __init__(
        self, limits: Any, access: AccessPolicy, address: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(SecurityPolicyNone(), limits)
        self._clock = clock
        self._issued: dict[int, float] = {}
        """When the token in use and the one that follows it were issued, by their ids."""
        self._access = access
        self._address = address
        self._has_greeted = False
        self._sent: tuple[x509.Certificate, ...] = ()
        self.rejected_certificate: x509.Certificate | None = None
        """The certificate of an application that is not trusted; whether it has the key is not known."""

    @property
    def is_encrypted(self) -> bool:
        """Return whether messages on it are encrypted."""
        return self._open and self.security_policy.Mode == ua.MessageSecurityMode.SignAndEncrypt

    @property
    def certificate(self) -> bytes:
        """Return the certificate of the client in DER, empty without encryption."""
        found: bytes = self.security_policy.peer_certificate if self.is_encrypted else b""
        return found

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The certificate of the client with the authorities that it sent."""
        return self._sent

    def uses(self, certificate: x509.Certificate) -> bool:
        """Return whether the channel was opened with this certificate of the server."""
        return bool(self.security_policy.host_certificate == der_from_x509(certificate))

    @property
    def peer(self) -> Peer:
        """Return the other end of the channel."""
        uris = application_uris(x509_from_der(self.certificate)) if self.certificate else []
        return Peer(self._address, self.is_encrypted, uris[0] if uris else "")

    def select_policy(
        self, uri: str, peer_certificate: bytes | None, mode: ua.MessageSecurityMode | None = None
    ) -> None:
        """Select the policy that the client requests.

        Policy and certificate stand in clear before what is encrypted (OPC 10000-6, 6.7.2.3): nothing is decrypted for
        an application that is not trusted. asyncua asks twice, the second time with the mode of the decrypted request.

        Raises BadSecurityPolicyRejected for one that is not offered. The policy None is always available: with it
        clients read the endpoints.
        """
        selected = self.security_policy
        if mode is not None and self._sent and (selected.URI, selected.Mode) == (uri, mode):
            return
        for policy in (*self._policies, _DISCOVERY):
            if policy.matches(uri, mode):
                # asyncua keeps the first certificate of a chain only.
                self._sent = read_chain(peer_certificate or b"")
                if policy.mode != ua.MessageSecurityMode.None_:
                    self._check_trust()
                self.security_policy = policy.create(peer_certificate)
                asymmetric = self.security_policy.asymmetric_cryptography
                if policy.mode != ua.MessageSecurityMode.None_:
                    asymmetric.Decryptor = FewBlocks(asymmetric.Decryptor)
                return
        raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityPolicyRejected)

    def _check_trust(self) -> None:
        """Raise BadSecurityChecksFailed without saying why; the audit record does."""
        if not self._sent:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)
        if not self._access.is_application_trusted(self._sent, self._address):
            self.rejected_certificate = self._sent[0]
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)

    def open(self, params: ua.OpenSecureChannelParameters, server: Any) -> ua.OpenSecureChannelResult:
        """Open the channel, or renew its key, after its signature was verified."""
        policy = self.security_policy
        is_secured = policy.Mode != ua.MessageSecurityMode.None_
        if is_secured and len(params.ClientNonce or b"") != policy.secure_channel_nonce_length:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadNonceInvalid)
        params.RequestedLifetime = min(max(params.RequestedLifetime, _SHORTEST_MS), _LONGEST_MS)
        result: ua.OpenSecureChannelResult = super().open(params, server)
        # asyncua counts from the token in use: a second renewal before the client uses the first has another key.
        token = result.SecurityToken
        token.TokenId = max(token.TokenId, max(self._issued, default=0) + 1)
        in_use = self.security_token.TokenId
        self._issued = {id: at for id, at in self._issued.items() if id == in_use} | {token.TokenId: self._clock()}
        return result

    def receive_from_header_and_body(self, header: ua.Header, body: Buffer) -> Any:
        """Accept a chunk in its order: one Hello, then the channel, then messages."""
        match header.MessageType:
            case ua.MessageType.Hello if not self._has_greeted:
                self._has_greeted = True
                return _checked(super().receive_from_header_and_body(header, body))
            case ua.MessageType.SecureOpen if self._has_greeted:
                if self._open and self.security_policy.Mode != ua.MessageSecurityMode.None_:
                    self._check_trust()  # it may have ended since the channel was opened
                return super().receive_from_header_and_body(header, body)
            case ua.MessageType.SecureMessage | ua.MessageType.SecureClose if self._open:
                return super().receive_from_header_and_body(header, body)
            case _:
                raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpMessageTypeInvalid)

    @property
    def chunk_body_size(self) -> int:
        """The number of bytes of a message in one chunk."""
        return int(
            MessageChunk.max_body_size(self.security_policy.symmetric_cryptography, self._limits.max_send_buffer)
        )

    def chunks(self, answer: AnswerBody, request_id: int) -> Iterator[bytes]:
        """Yield the chunks of an answer, each encrypted when it is needed."""
        for body, is_last in answer.chunks(self.chunk_body_size):
            kind = ua.ChunkType.Single if is_last else ua.ChunkType.Intermediate
            chunk = MessageChunk(self.security_policy.symmetric_cryptography, body, chunk_type=kind)
            chunk.SecurityHeader.TokenId = self.security_token.TokenId
            chunk.MessageHeader.ChannelId = self.security_token.ChannelId
            chunk.SequenceHeader.RequestId = request_id
            if self._sequence_number >= _LAST_SEQUENCE_NUMBER:
                self._sequence_number = 0
            self._sequence_number += 1
            chunk.SequenceHeader.SequenceNumber = self._sequence_number
            yield chunk.to_binary()

    def _check_sym_header(self, security_hdr: ua.SymmetricAlgorithmHeader) -> None:
        # asyncua compares the previous token with the wall clock; a step of the clock must not end the channel.
        self.prev_security_token.CreatedAt = datetime.now(UTC)
        super()._check_sym_header(security_hdr)
        # Monotonic: a step of the wall clock ends no channel.
        in_use = self.security_token
        if self._clock() - self._issued[in_use.TokenId] > in_use.RevisedLifetime / 1000 * _GRACE:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecureChannelTokenUnknown)


def _checked(hello: ua.Hello) -> ua.Hello:
    largest_answer = hello.MaxMessageSize or _SMALLEST_BUFFER  # 0: it takes any
    if min(hello.ReceiveBufferSize, hello.SendBufferSize, largest_answer) < _SMALLEST_BUFFER:
        raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpNotEnoughResources)
    return hello
