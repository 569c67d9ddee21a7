"""A connection that this server opens to a client (reverse connect, OPC 10000-6, 7.1.3).

The server greets the client with a ReverseHello. After the client's Hello the connection is as any other: the same
limits, channels, logins and checks.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Final

from asyncua import ua
from asyncua.common.utils import Buffer

from edge.foundation.errors import Unavailable
from edge.opcua.server_transport import ClientConnection, TcpListener

_HEAD: Final = struct.Struct("<4sI")
_ERROR: Final = struct.Struct("<4sIIi")
_LONGEST_TEXT: Final = 4_095  # of each text of a ReverseHello


def reverse_hello(server_uri: str, endpoint_url: str) -> bytes:
    """Return a ReverseHello (OPC 10000-6, 7.1.2.6). Raises ValueError for a text that is too long."""
    texts = [text.encode() for text in (server_uri, endpoint_url)]
    if any(len(text) > _LONGEST_TEXT for text in texts):
        raise ValueError(f"a ReverseHello takes texts of up to {_LONGEST_TEXT} bytes")
    body = b"".join(struct.pack("<i", len(text)) + text for text in texts)
    return _HEAD.pack(b"RHEF", _HEAD.size + len(body)) + body


class DialedConnection(ClientConnection):
    """One connection to a client that listens."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._changed = asyncio.Event()
        self._is_open = False
        self._is_lost = False
        self._on_lost: Callable[[], None] | None = None
        self.refusal = ""
        """Why the client refused the ReverseHello; empty when it did not."""

    async def wait_taken(self) -> bool:
        """Return True when the client has opened a secure channel, False when the connection ended without."""
        await self._changed.wait()
        return self._is_open

    def when_lost(self, callback: Callable[[], None]) -> None:
        """Call back once when the connection has ended, which may be now."""
        if self._is_lost:
            callback()
        else:
            self._on_lost = callback

    def data_received(self, data: bytes) -> None:
        """Process the bytes of the client; it refuses with an Error message instead of its Hello."""
        if data.startswith(b"ERRF") and not self._is_open:
            self.refusal = _reason(data)
            if self.transport is not None:
                self.transport.abort()
            return
        super().data_received(data)

    def connection_lost(self, ex: BaseException | None) -> None:
        """Report the end of the connection."""
        super().connection_lost(ex)
        self._is_lost = True
        self._changed.set()
        if self._on_lost is not None:
            self._on_lost()

    async def _process_one_msg(self, header: ua.Header, buf: Buffer) -> bool:
        continues = await super()._process_one_msg(header, buf)
        if not self._is_open and self.processor is not None and self.processor.channel.is_open():
            self._is_open = True
            self._changed.set()
        return continues


async def dial(listener: TcpListener, greeting: bytes, host: str, port: int) -> DialedConnection:
    """Connect to a client that listens, and send the greeting: a ReverseHello.

    Raises OSError, and Unavailable while all places for connections are taken.
    """
    if len(listener.clients) >= listener.iserver.max_connections:
        raise Unavailable("all connections are in use", "Raise [opcua] max_connections.")
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(lambda: listener.connection(DialedConnection), host, port)
    transport.write(greeting)
    return connection


def _reason(message: bytes) -> str:
    """Return the status of an Error message (OPC 10000-6, 7.1.2.5)."""
    if len(message) < _ERROR.size:
        return "an Error message that is cut off"
    code = _ERROR.unpack_from(message)[2]
    return str(ua.StatusCode(code).name)
