"""A raw connection, for messages that no client library sends."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import nodeid_from_binary, nodeid_to_binary, struct_from_binary, struct_to_binary

_POLICY_NONE = "http://opcfoundation.org/UA/SecurityPolicy#None"


class Wire:
    """A raw connection: it sends any bytes and reads the chunks of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.channel_id = self.token_id = 0
        self._sequence = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, endpoint: str) -> AsyncIterator["Wire"]:
        place = urlsplit(endpoint)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.transport.abort()

    def send(self, kind: bytes, body: bytes, final: bytes = b"F", size: int | None = None) -> None:
        """Send a chunk; its header can contain a wrong size."""
        channel = b"" if kind == b"HEL" else struct.pack("<I", self.channel_id)
        length = 8 + len(channel) + len(body) if size is None else size
        self.writer.write(struct.pack("<3scI", kind, final, length) + channel + body)

    async def receive(self) -> tuple[bytes, Buffer]:
        """Wait for the next chunk; return its type and its content."""
        async with asyncio.timeout(60):
            kind, size = struct.unpack("<3sxI", await self.reader.readexactly(8))
            return kind, Buffer(await self.reader.readexactly(size - 8))

    async def hello(self) -> ua.Acknowledge:
        self.send(b"HEL", struct_to_binary(ua.Hello(EndpointUrl="opc.tcp://localhost")))
        kind, body = await self.receive()
        assert kind == b"ACK"
        return struct_from_binary(ua.Acknowledge, body)

    async def open(self) -> None:
        """Open a channel without security."""
        request = ua.OpenSecureChannelRequest()
        request.Parameters.SecurityMode = ua.MessageSecurityMode.None_
        request.Parameters.RequestedLifetime = 600_000
        header = struct_to_binary(ua.AsymmetricAlgorithmHeader(SecurityPolicyURI=_POLICY_NONE))
        self.send(b"OPN", header + self._next() + struct_to_binary(request))
        _, body = await self.receive()
        (self.channel_id,) = struct.unpack("<I", body.read(4))
        struct_from_binary(ua.AsymmetricAlgorithmHeader, body)
        body.skip(8)
        answer = struct_from_binary(ua.OpenSecureChannelResponse, body)
        self.token_id = answer.Parameters.SecurityToken.TokenId

    def request(self, body: bytes, final: bytes = b"F") -> None:
        """Send the body of a request, or a part of it."""
        self.send(b"MSG", struct.pack("<I", self.token_id) + self._next() + body, final)

    async def answer(self) -> tuple[int, ua.ResponseHeader, Buffer]:
        """Wait for a response of one chunk; return its type, its header and the rest."""
        kind, body = await self.receive()
        assert kind == b"MSG", kind
        body.skip(16)
        return _type_id(body), struct_from_binary(ua.ResponseHeader, body), body

    async def is_ended_with(self, code: int) -> None:
        """Check that the server sends this error message and then closes the connection."""
        kind, body = await self.receive()
        assert kind == b"ERR", kind
        assert struct_from_binary(ua.ErrorMessage, body).Error.value == code
        await self.is_ended()

    async def is_ended(self) -> None:
        """Check that the server closes the connection without further data."""
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                assert await self.reader.read(1) == b""

    def _next(self) -> bytes:
        self._sequence += 1
        return struct.pack("<II", self._sequence, self._sequence)


def _type_id(body: Buffer) -> int:
    return int(nodeid_from_binary(body).Identifier)


def service(code: int, token: ua.NodeId, parameters: bytes) -> bytes:
    """Return a request with the id of its encoding and the bytes of its parameters."""
    header = ua.RequestHeader(AuthenticationToken=token, RequestHandle=1, TimeoutHint=5000)
    return bytes(nodeid_to_binary(ua.NodeId(code))) + bytes(struct_to_binary(header)) + parameters
