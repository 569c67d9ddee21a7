"""The messages of MessagePack-RPC, the bytes they travel as, and the sockets: TCP, TLS with certificates, or Unix.

https://github.com/msgpack-rpc/msgpack-rpc/blob/master/spec.md
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import urlsplit

import msgpack
import msgspec
from msgspec import Struct

from edge.config import RpcSettings
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.text import Text
from edge.model.payload import decode_msgpack

MESSAGE_BYTES = 1 << 20
"""Larger messages would endanger the memory of a gateway: a decoded message takes up to seventy times its bytes."""
MAX_NESTING = 40
"""Message, parameters, event and data are levels too: the data may have as many levels as over MQTT."""

_LARGEST_ID = 0xFFFF_FFFF
_LONGEST_METHOD = 100
"""A method is named in errors and logs."""


class Request(Struct, frozen=True):
    """`[0, id, method, params]`: requests a response with the same id, which the sender chose."""

    id: int
    method: str
    params: Sequence[Any]


class Response(Struct, frozen=True):
    """`[1, id, error, result]`: an error is a text that begins with its kind, or None."""

    id: int
    error: Any
    result: Any


class Notification(Struct, frozen=True):
    """`[2, method, params]`: requests no response."""

    method: str
    params: Sequence[Any]


class InvalidRequest(Struct, frozen=True):
    """A request of which only the id is valid."""

    id: int
    fault: str


def encode(message: Request | Response | Notification) -> bytes:
    """Return the bytes of a message; msgspec Structs in it travel under the names of their fields on the wire."""
    match message:
        case Request(id, method, params):
            parts: tuple[object, ...] = (0, id, method, params)
        case Response(id, error, result):
            parts = (1, id, error, result)
        case Notification(method, params):
            parts = (2, method, params)
        case _:
            assert_never(message)
    # JSON has whole numbers of more than 64 bits, MessagePack has not: the nearest double is sent instead.
    packed: bytes = msgpack.packb(msgspec.to_builtins(parts, builtin_types=(bytes,)), default=float)
    return packed


class Frames:
    """Splits a stream of bytes into messages; holds at most one message and the bytes fed last.

    It scans headers only and builds no objects: a header that announces a million entries costs nothing until they
    arrive, and each byte is scanned once. An Unpacker of msgpack would have to be used again after it ran out of data.
    """

    def __init__(self, most_bytes: int = MESSAGE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._at = 0
        self._objects = 1
        """Objects that begin at or after `_at` until the message is complete."""

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    def __iter__(self) -> Iterator[Request | Response | Notification | InvalidRequest]:
        """Yield the complete messages. Raises Refused(`malformed`): the bytes after it cannot be read."""
        return map(read, self.split_frames())

    def split_frames(self) -> Iterator[bytes]:
        """Yield the bytes of each message that is complete; raises as above."""
        while self._find_end():
            frame = bytes(memoryview(self._buffer)[: self._at])
            del self._buffer[: self._at]
            self._at, self._objects = 0, 1
            yield frame

    def _find_end(self) -> bool:
        """Scan to the end of the message; return whether the message is complete."""
        buffer, at, objects = self._buffer, self._at, self._objects
        end = len(buffer)
        while objects and at < end:
            shape = _SHAPES[buffer[at]]
            if shape is None:
                raise Refused("malformed", Text.of("not MessagePack: {buffer:#04x}", buffer=buffer[at]))
            length_bytes, skipped, children, factor = shape
            body = at + 1 + length_bytes
            if body > end:
                break
            if length_bytes:
                length = int.from_bytes(buffer[at + 1 : body], "big")
                if factor:
                    children = factor * length
                else:
                    skipped += length
            at = body + skipped
            objects += children - 1
        self._at, self._objects = at, objects
        if max(at, end if objects else 0) > self._most_bytes:
            raise Refused(
                "malformed", Text.of("a message of more than {most_bytes} bytes", most_bytes=self._most_bytes)
            )
        return not objects and at <= end


_SMALL_MAP, _SMALL_LIST, _SHORT_TEXT, _TYPED, _NEGATIVE = 0x80, 0x90, 0xA0, 0xC0, 0xE0
"""The first bytes of ranges of headers; below them are small numbers, and from the last one negative ones."""
_Shape = tuple[int, int, int, int]
"""Bytes of the length, bytes skipped, objects inside, and what the length counts: 0 bytes, 1 entries, 2 pairs."""


def _shape_of(header: int) -> _Shape | None:
    """Return the shape of an object by its first byte, None for the one that MessagePack never uses."""
    match header:
        case _ if header < _SMALL_MAP or header >= _NEGATIVE:
            return 0, 0, 0, 0
        case _ if header < _SMALL_LIST:
            return 0, 0, 2 * (header & 0x0F), 0
        case _ if header < _SHORT_TEXT:
            return 0, 0, header & 0x0F, 0
        case _ if header < _TYPED:
            return 0, header & 0x1F, 0, 0
        case 0xC0 | 0xC2 | 0xC3:
            return 0, 0, 0, 0
        case 0xC4 | 0xC5 | 0xC6:  # bytes
            return 1 << header - 0xC4, 0, 0, 0
        case 0xC7 | 0xC8 | 0xC9:  # extensions have a byte for their type
            return 1 << header - 0xC7, 1, 0, 0
        case 0xCA | 0xCB:  # floating point
            return 0, 4 << header - 0xCA, 0, 0
        case 0xCC | 0xCD | 0xCE | 0xCF:
            return 0, 1 << header - 0xCC, 0, 0
        case 0xD0 | 0xD1 | 0xD2 | 0xD3:
            return 0, 1 << header - 0xD0, 0, 0
        case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:  # extensions of a fixed size
            return 0, 1 + (1 << header - 0xD4), 0, 0
        case 0xD9 | 0xDA | 0xDB:  # texts
            return 1 << header - 0xD9, 0, 0, 0
        case 0xDC | 0xDD:  # lists
            return 2 << header - 0xDC, 0, 0, 1
        case 0xDE | 0xDF:  # maps
            return 2 << header - 0xDE, 0, 0, 2
        case _:
            return None


_SHAPES = tuple(map(_shape_of, range(256)))


def read(frame: bytes) -> Request | Response | Notification | InvalidRequest:
    """Read the bytes of one message. Raises Refused(`malformed`)."""
    try:
        parts = decode_msgpack(frame)
    except (ValueError, RecursionError) as error:
        raise Refused("malformed", Text.of("not MessagePack: {reason}", reason=error)) from None
    match parts:
        case [0, int(id), method, params] if 0 <= id <= _LARGEST_ID:
            if fault := _fault_of(method, params):
                return InvalidRequest(id, str(fault))
            return Request(id, method, params)
        case [1, int(id), error, result] if not any(_nests_deeper(value, MAX_NESTING) for value in (error, result)):
            return Response(id, error, result)
        case [2, method, params]:
            if fault := _fault_of(method, params):
                raise Refused("malformed", Text.of("a notification whose {fault}", fault=fault))
            return Notification(method, params)
        case _:
            raise Refused("malformed", "neither a request nor a response nor a notification")


def _fault_of(method: object, params: object) -> Text | None:
    if not isinstance(method, str) or len(method) > _LONGEST_METHOD:
        return Text.of("method is not a text of at most {most} characters", most=_LONGEST_METHOD)
    if not isinstance(params, list):
        return Text("parameters are not list")
    if _nests_deeper(params, MAX_NESTING):
        return Text.of("parameters are nested deeper than {most} levels", most=MAX_NESTING)
    return None


def _nests_deeper(value: object, levels: int) -> bool:
    level = [value]
    for _ in range(levels + 1):
        level = list(chain.from_iterable(nest.values() if isinstance(nest, dict) else nest for nest in _nests(level)))
        if not level:
            return False
    return True


def _nests(level: list[object]) -> Iterator[Any]:
    return (value for value in level if isinstance(value, dict | list))


Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]

READ_BYTES = 64 * 1024
_HANDSHAKE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
_BACKLOG = 16
_OWNER_AND_GROUP = 0o117
"""The umask under which a socket is made with mode 0660."""


@asynccontextmanager
async def listen(settings: RpcSettings, accept: Accept) -> AsyncIterator[str]:
    """Call `accept` for each client that connects; yield the URL.

    Raises Unavailable when the address is taken, SettingsError when a certificate cannot be loaded.
    """
    parts = urlsplit(settings.listen)
    try:
        if parts.scheme == "unix":
            path = Path(parts.path)
            server = await asyncio.start_unix_server(accept, sock=_bind_unix(path), limit=READ_BYTES, backlog=_BACKLOG)
        else:
            tls = _server_context(settings) if parts.scheme == "tls" else None
            server = await asyncio.start_server(
                accept,
                parts.hostname,
                parts.port,
                ssl=tls,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls else None,
                limit=READ_BYTES,
                backlog=_BACKLOG,
            )
            path = None
    except OSError as error:
        message = Text.of(
            "cannot listen for MessagePack-RPC at {listen}: {reason}",
            listen=settings.listen,
            reason=error.strerror or error,
        )
        raise Unavailable(message, "Is another program there already, and is the address ours?") from None
    try:
        yield _url(parts.scheme, server)
    finally:
        server.close()
        if path is not None:
            path.unlink(missing_ok=True)


async def connect(
    url: str, *, ca_file: str = "", cert_file: str = "", key_file: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to where a server listens; raises Unavailable with the reason.

    With `tls:`, the server is asked for a certificate that `ca_file` vouches for, and shown ours.
    """
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            if parts.scheme == "unix":
                return await asyncio.open_unix_connection(parts.path, limit=READ_BYTES)
            tls = None
            if parts.scheme == "tls":
                tls = ssl.create_default_context(cafile=ca_file or None)
                tls.load_cert_chain(cert_file, key_file)
            return await asyncio.open_connection(parts.hostname, parts.port, ssl=tls, limit=READ_BYTES)
    except TimeoutError:
        raise Unavailable(Text.of("no connection to {url} in time", url=url), "Is the gateway running?") from None
    except OSError as error:
        message = Text.of("no connection to {url}: {reason}", url=url, reason=error.strerror or error)
        raise Unavailable(message, "Is the gateway running, and is [rpc] listen its address?") from None


def _server_context(settings: RpcSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=settings.ca_file)
        context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as error:
        files = f"{settings.ca_file}, {settings.cert_file}, {settings.key_file}"
        problem = Text.of("rpc: certificate or key cannot be loaded ({files}): {reason}", files=files, reason=error)
        advice = "Check the paths, that the service may read them, and that they are PEM."
        raise SettingsError([problem], advice) from None
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _bind_unix(path: Path) -> socket.socket:
    """Bind a socket that only its owner and group may open, in the place of a stale one."""
    if path.is_socket():
        if _is_served(path):
            raise Unavailable(
                Text.of("another program serves {path} already", path=path), "Stop it, or choose another socket."
            )
        path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(_OWNER_AND_GROUP)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        # The system accepts the connection for any process that listens.
        caller.settimeout(1.0)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True


def _url(scheme: str, server: asyncio.Server) -> str:
    name = server.sockets[0].getsockname()
    if scheme == "unix":
        return f"unix://{name}"
    host, port = name[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
