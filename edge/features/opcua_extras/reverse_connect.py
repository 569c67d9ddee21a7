"""Keeps a connection waiting at each client that listens for this server (reverse connect, OPC 10000-6, 7.1.3)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import structlog

from edge.features.opcua_extras.dialed_connection import DialedConnection
from edge.foundation.backoff import Backoff
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup

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
