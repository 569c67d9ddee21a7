"""Keeps a connection waiting at each client that listens for this server (reverse connect, OPC 10000-6, 7.1.3).

The server greets the client with a ReverseHello. After the client's Hello the connection is as any other: the same
limits, channels, logins and checks.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import structlog
from asyncua import ua
from asyncua.common.utils import Buffer

from edge.foundation.backoff import Backoff
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup
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

    def __init__(self, listener: TcpListener) -> None:
        super().__init__(listener)
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
            self.transport.abort()
            return
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Report the end of the connection."""
        super().connection_lost(exc)
        self._is_lost = True
        self._changed.set()
        if self._on_lost is not None:
            self._on_lost()

    async def answer(self, header: ua.Header, chunk: Buffer) -> bool:
        """Answer one chunk; note that the client has opened its channel."""
        continues = await super().answer(header, chunk)
        if not self._is_open and self.processor.channel.is_open:
            self._is_open = True
            self._changed.set()
        return continues


async def dial(listener: TcpListener, greeting: bytes, host: str, port: int) -> DialedConnection:
    """Connect to a client that listens, and send the greeting: a ReverseHello.

    Raises OSError, and Unavailable while all places for connections are taken.
    """
    if not listener.has_room:
        raise Unavailable("all connections are in use", "Raise [opcua] max_connections.")
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(lambda: DialedConnection(listener), host, port)
    transport.write(greeting)
    return connection


def _reason(message: bytes) -> str:
    """Return the status of an Error message (OPC 10000-6, 7.1.2.5)."""
    if len(message) < _ERROR.size:
        return "an Error message that is cut off"
    code = _ERROR.unpack_from(message)[2]
    return str(ua.StatusCode(code).name)


logger = structlog.get_logger(__name__)

RETRY_S: Final = (0.5, 30.0)
STABLE_S: Final = 10.0
"""After a connection that lasted longer, the delays begin again with the shortest."""
CONNECTIONS: Final = 5
"""Open connections to one client; it uses as many sessions over them as it likes."""
_CONNECT_WITHIN_S: Final = 5.0
_PORT: Final = 4840

Dial: TypeAlias = Callable[[str, int], Awaitable[DialedConnection]]
"""Connects to a host and port, and greets the client there. Raises OSError, and Unavailable without a free place."""


async def wait_at_clients(dial: Dial, urls: tuple[str, ...], retry_s: tuple[float, float] = RETRY_S) -> None:
    """Keep a connection waiting at each of these clients until cancelled."""
    async with TaskGroup() as tasks:
        for url in urls:
            tasks.create_task(_wait_at(dial, url, retry_s), name=f"reverse connect {url}")


async def _wait_at(dial: Dial, url: str, retry_s: tuple[float, float]) -> None:
    """Connect again whenever the client uses or ends the connection; one outage is logged once."""
    parts = urlsplit(url)
    backoff = Backoff(*retry_s, stable=STABLE_S)
    places = asyncio.Semaphore(CONNECTIONS)
    is_reported = False
    while True:
        await places.acquire()
        try:
            async with asyncio.timeout(_CONNECT_WITHIN_S):
                connection = await dial(parts.hostname or "", parts.port or _PORT)
        except (OSError, TimeoutError, UnicodeError, Unavailable) as error:  # a name that is none in DNS: UnicodeError
            places.release()
            refusal = error.message if isinstance(error, Unavailable) else str(error) or "no answer"
        else:
            connection.when_lost(places.release)
            if await connection.wait_taken():
                if is_reported:
                    logger.info("opcua reverse connection restored", client=url)
                is_reported = False
                # The client may need another one at once.
                backoff = Backoff(*retry_s, stable=STABLE_S)
                await asyncio.sleep(retry_s[0])
                continue
            refusal = connection.refusal
        if refusal and not is_reported:
            logger.warning("opcua reverse connection failed, retrying", client=url, reason=refusal)
            is_reported = True
        await backoff.pause()
