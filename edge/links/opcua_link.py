"""A connection to an OPC UA server that is kept up: opened again, with growing delays, whenever it is lost."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from edge.config import OpcuaEquipmentSettings
from edge.errors import Refused, SettingsError, Unavailable
from edge.links.backoff import delay
from edge.links.opcua import Session, open_client

# A device may take that long for one method.
REQUEST_SECONDS = 30.0
RECONNECT_SECONDS = (0.1, 5.0)
# A connection that lasted this long was a good one: the next attempt starts with the shortest delay again.
STABLE_SECONDS = 5.0

_log = structlog.get_logger(__name__)


async def keep_connected(settings: OpcuaEquipmentSettings, work: Callable[[Session], Awaitable[None]]) -> None:
    """Have `work` done on a session, and on a new one whenever it ends or fails.

    Nothing of a session outlives it: a server that was started again may have other namespace indexes, other nodes and
    no subscriptions, so the work finds its nodes and subscribes anew each time. Raises SettingsError when a certificate
    of ours cannot be read.
    """
    loop = asyncio.get_running_loop()
    attempt = 0
    last = ""
    while True:
        began = loop.time()
        try:
            async with open_client(settings.url, settings=settings, request_timeout=REQUEST_SECONDS) as session:
                await work(session)
        except (Unavailable, Refused) as error:
            if error.message != last:
                _log.warning("OPC UA equipment not connected, trying on", url=settings.url, reason=error.message)
            last = error.message
        except SettingsError:
            raise
        except Exception:  # noqa: BLE001 - what a device says against all rules must not end the work of the others
            _log.exception("OPC UA equipment could not be worked with, trying on", url=settings.url)
        attempt = 0 if loop.time() - began > STABLE_SECONDS else attempt + 1
        await asyncio.sleep(delay(attempt, *RECONNECT_SECONDS))
