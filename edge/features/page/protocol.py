"""HTTP/1.1 connections with bounds: their number, the time for a request, and clients that do not read."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct, field
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

HEAD_BYTES = 16 * 1024
KEEP_ALIVE_S = 15
_HEAD_S = 10.0
_UNREAD_S = 10.0

# Each invalid request would write a line: a client must not be able to fill the log.
logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


class ConnectionBounds(Struct):
    """The most connections in all and of one address, and how many of each address are open."""

    most: int
    most_of_address: int
    head_s: float = _HEAD_S
    unread_s: float = _UNREAD_S
    open: Counter[str] = field(default_factory=Counter)

    def admit(self, address: str) -> bool:
        """Count a connection; return False when it is one too many."""
        if self.open.total() >= self.most or self.open[address] >= self.most_of_address:
            return False
        self.open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count the end of an admitted connection."""
        self.open[address] -= 1
        if self.open[address] <= 0:
            del self.open[address]


def server_config(app: ASGIApp) -> Config:
    """Return the configuration of the protocol: no log of its own, no WebSocket, no trust in forwarded addresses."""
    config = Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    config.load()
    return config


class BoundedConnection(H11Protocol):
    """One connection: aborted when a head takes too long, or when the client does not read what it asked for."""

    def __init__(self, config: Config, state: ServerState, bounds: ConnectionBounds, ended: Callable[[], None]) -> None:
        """Call `ended` once when the connection has ended."""
        super().__init__(config, state, {})
        self._ended = ended
        self._bounds = bounds
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Accept the connection and expect its first request."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._bounds.head_s, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        for timer in (self._head_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._ended()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; limit the time until a request is complete."""
        super().data_received(data)
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._bounds.head_s, self.abort)

    def on_response_complete(self) -> None:
        """Expect the next request."""
        self._stop_head_timer()
        super().on_response_complete()
        if self.transport.is_closing() and self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.abort)

    def pause_writing(self) -> None:
        """Limit the time for which the client does not read."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.abort)

    def resume_writing(self) -> None:
        """End the limit: the client reads again."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection; abort it when the client has not read the last response."""
        if self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().timeout_keep_alive_handler()

    def abort(self) -> None:
        """Abort the connection without waiting for the client."""
        self.transport.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
