"""A secure channel with an offered policy, to a trusted application, for its granted lifetime: bytes in, messages out.

asyncua's channel would open without security regardless of the offer, and would never expire; it decrypts before it
knows its client.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from asyncua import ua
from asyncua.common.connection import MessageChunk
from asyncua.common.utils import Buffer, create_nonce
from asyncua.crypto.security_policies import SecurityPolicyFactory, SecurityPolicyNone
from asyncua.crypto.uacrypto import der_from_x509, x509_from_der
from asyncua.ua.ua_binary import struct_from_binary
from cryptography import x509
from msgspec import Struct

from edge.opcua.access import AccessPolicy, Peer
from edge.opcua.answer_encoding import AnswerBody
from edge.opcua.application_certificate import application_uris, read_chain
from edge.opcua.chunk_order import LAST_SEQUENCE_NUMBER, ChunkOrder
from edge.opcua.limits import MOST_ENCRYPTED_BLOCKS, NegotiatedLimits

# The longest and the shortest lifetime of a key; a client renews it after three quarters of it.
_LONGEST_MS = 3_600_000
_SHORTEST_MS = 10_000
_GRACE = 1.25  # for what was sent before the new key arrived (OPC 10000-4, 5.5.2)

_SMALLEST_BUFFER = 8192  # of OPC 10000-6, 7.1.2.3

_DISCOVERY = SecurityPolicyFactory(SecurityPolicyNone, ua.MessageSecurityMode.None_)


class RequestKey(Struct, frozen=True):
    """What an answer repeats of its request: the handle of its header, and its number on the channel."""

    handle: int
    number: int


class _Key(Struct, frozen=True):
    """A key of the channel: its token, the nonces from which it is derived, and when it was issued."""

    token: ua.ChannelSecurityToken
    client_nonce: bytes
    server_nonce: bytes
    issued_at: float


class ServerChannel:
    """The channel of one connection; `policies` are those that the server offers at present."""

    def __init__(
        self,
        limits: NegotiatedLimits,
        access: AccessPolicy,
        address: str,
        policies: Sequence[SecurityPolicyFactory],
        new_id: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.security_policy: Any = SecurityPolicyNone()
        self._limits = limits
        self._access = access
        self._address = address
        self._policies = policies
        self._new_id = new_id
        self._clock = clock
        self._key: _Key | None = None
        self._next: _Key | None = None
        """The key of a renewal until the client uses it."""
        self._has_greeted = False
        self._sent: tuple[x509.Certificate, ...] = ()
        self._sent_number = 0
        self._order = ChunkOrder()
        self._parts: list[MessageChunk] = []
        self.rejected_certificate: x509.Certificate | None = None
        """The certificate of an application that is not trusted; whether it has the key is not known."""

    @property
    def is_open(self) -> bool:
        """Whether messages are taken."""
        return self._key is not None

    @property
    def token(self) -> ua.ChannelSecurityToken:
        """The token in use; an empty one before the channel is open."""
        return ua.ChannelSecurityToken() if self._key is None else self._key.token

    @property
    def is_encrypted(self) -> bool:
        """Return whether messages on it are encrypted."""
        return self.is_open and bool(self.security_policy.Mode == ua.MessageSecurityMode.SignAndEncrypt)

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

    def receive(self, header: ua.Header, body: Buffer) -> ua.Hello | ua.Message | None:
        """Return the Hello or the message that a chunk completes; None when more chunks follow, or it is aborted.

        A connection has one Hello, then the channel, then messages. Raises UaStatusCodeError for all else; any other
        error of malformed bytes ends the connection, too.
        """
        match header.MessageType:
            case ua.MessageType.Hello if not self._has_greeted:
                self._has_greeted = True
                return _checked(struct_from_binary(ua.Hello, body))
            case ua.MessageType.SecureOpen if self._has_greeted:
                self._prepare(body.copy(header.body_size))
            case ua.MessageType.SecureMessage | ua.MessageType.SecureClose if self._key is not None:
                security = struct_from_binary(ua.SymmetricAlgorithmHeader, body.copy(header.body_size))
                self._use_token(security.TokenId, self._key)
            case _:
                raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpMessageTypeInvalid)
        return self._collect(MessageChunk.from_header_and_body(self.security_policy, header, body))

    def _prepare(self, data: Buffer) -> None:
        """Select the policy of an OpenSecureChannel, and check trust and size before anything is decrypted.

        Policy and certificate stand in clear before what is encrypted (OPC 10000-6, 6.7.2.3).
        """
        security = struct_from_binary(ua.AsymmetricAlgorithmHeader, data)
        if self._key is None:
            self.select_policy(security.SecurityPolicyURI, security.SenderCertificate)
        elif self.security_policy.Mode != ua.MessageSecurityMode.None_:
            self._check_trust()  # it may have ended since the channel was opened
        block = self.security_policy.asymmetric_cryptography.encrypted_block_size()
        if self._sent and len(data) > MOST_ENCRYPTED_BLOCKS * block:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)

    def select_policy(
        self, uri: str, peer_certificate: bytes | None, mode: ua.MessageSecurityMode | None = None
    ) -> None:
        """Select the policy that the client requests; its mode is known when the request is decrypted.

        Raises BadSecurityPolicyRejected for one that is not offered. The policy None is always available: with it
        clients read the endpoints.
        """
        for policy in (*self._policies, _DISCOVERY):
            if policy.matches(uri, mode):
                # asyncua keeps the first certificate of a chain only.
                self._sent = read_chain(peer_certificate or b"")
                if policy.mode != ua.MessageSecurityMode.None_:
                    self._check_trust()
                self.security_policy = policy.create(peer_certificate)
                return
        raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityPolicyRejected)

    def _check_trust(self) -> None:
        """Raise BadSecurityChecksFailed without saying why; the audit record does."""
        if not self._sent:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)
        if not self._access.is_application_trusted(self._sent, self._address):
            self.rejected_certificate = self._sent[0]
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecurityChecksFailed)

    def open(self, params: ua.OpenSecureChannelParameters) -> ua.OpenSecureChannelResult:
        """Open the channel, or renew its key, after its signature was verified."""
        policy = self.security_policy
        if self._key is None and policy.Mode != params.SecurityMode:
            chain = b"".join(map(der_from_x509, self._sent))
            self.select_policy(policy.URI, chain, params.SecurityMode)
            policy = self.security_policy
        is_secured = policy.Mode != ua.MessageSecurityMode.None_
        if is_secured and len(params.ClientNonce or b"") != policy.secure_channel_nonce_length:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadNonceInvalid)
        # asyncua counts from the token in use: a second renewal before the client uses the first has another key.
        last = self._next or self._key
        token = ua.ChannelSecurityToken(
            ChannelId=self._new_id() if last is None else last.token.ChannelId,
            TokenId=1 if last is None else last.token.TokenId + 1,
            CreatedAt=datetime.now(UTC),
            RevisedLifetime=min(max(params.RequestedLifetime, _SHORTEST_MS), _LONGEST_MS),
        )
        server_nonce = create_nonce(policy.secure_channel_nonce_length)
        key = _Key(token, params.ClientNonce, server_nonce, self._clock())
        if self._key is None:
            self._use(key)
        else:
            self._next = key
        return ua.OpenSecureChannelResult(SecurityToken=token, ServerNonce=server_nonce)

    def _use(self, key: _Key) -> None:
        self._key, self._next = key, None
        policy = self.security_policy
        policy.make_local_symmetric_key(key.client_nonce, key.server_nonce)
        policy.make_remote_symmetric_key(key.server_nonce, key.client_nonce, key.token.RevisedLifetime)

    def _use_token(self, token_id: int, key: _Key) -> None:
        """Check the token of a message; the first with a new one ends the former."""
        if self._next is not None and token_id == self._next.token.TokenId:
            key = self._next
            self._use(key)
        # Monotonic: a step of the wall clock ends no channel.
        is_expired = self._clock() - key.issued_at > key.token.RevisedLifetime / 1000 * _GRACE
        if token_id != key.token.TokenId or is_expired:
            raise ua.UaStatusCodeError(ua.StatusCodes.BadSecureChannelTokenUnknown)

    def _collect(self, chunk: MessageChunk) -> ua.Message | None:
        """Return the message that a chunk completes (OPC 10000-6, 6.7.2)."""
        self._order.check(chunk, self.token.ChannelId)
        if chunk.MessageHeader.ChunkType == ua.ChunkType.Abort:
            self._parts.clear()  # its request is to be ignored
            return None
        self._parts.append(chunk)
        size = sum(len(part.Body) for part in self._parts)
        if (
            chunk.MessageHeader.packet_size > self._limits.max_recv_buffer
            or size > self._limits.max_message_size
            or len(self._parts) > self._limits.max_chunk_count
        ):
            raise ua.UaStatusCodeError(ua.StatusCodes.BadRequestTooLarge)
        if chunk.MessageHeader.ChunkType == ua.ChunkType.Intermediate:
            return None
        message = ua.Message(self._parts)
        self._parts = []
        return message

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
            chunk.SecurityHeader.TokenId = self.token.TokenId
            yield self._numbered(chunk, request_id)

    def opened(self, body: bytes, request_id: int) -> bytes:
        """Return the chunk with the answer to an OpenSecureChannel."""
        kind = ua.MessageType.SecureOpen
        (chunk,) = MessageChunk.message_to_chunks(self.security_policy, body, self._limits.max_send_buffer, kind)
        return self._numbered(chunk, request_id)

    def _numbered(self, chunk: MessageChunk, request_id: int) -> bytes:
        chunk.MessageHeader.ChannelId = self.token.ChannelId
        chunk.SequenceHeader.RequestId = request_id
        if self._sent_number >= LAST_SEQUENCE_NUMBER:
            self._sent_number = 0
        self._sent_number += 1
        chunk.SequenceHeader.SequenceNumber = self._sent_number
        encoded: bytes = chunk.to_binary()
        return encoded


def _checked(hello: ua.Hello) -> ua.Hello:
    largest_answer = hello.MaxMessageSize or _SMALLEST_BUFFER  # 0: it takes any
    if min(hello.ReceiveBufferSize, hello.SendBufferSize, largest_answer) < _SMALLEST_BUFFER:
        raise ua.UaStatusCodeError(ua.StatusCodes.BadTcpNotEnoughResources)
    return hello
