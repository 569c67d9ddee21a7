"""Stops a listener of asyncua together with all of its connections."""

import asyncio

from asyncua.server.binary_server_asyncio import BinaryServer
from asyncua.server.internal_server import InternalServer

_FLUSH_S = 0.5
"""Time in which a client can still read what was sent to it."""


async def stop_listener(listener: BinaryServer) -> None:
    """Close the port and every connection; abort those that are still open after a short time.

    asyncua closes the port last and then waits until each client is gone. A client that was accepted meanwhile stays as
    long as it likes, and so does a client that does not read.
    """
    aborting = asyncio.create_task(_keep_aborting(listener.iserver), name="opcua connections at stop")
    try:
        await BinaryServer.stop(listener)
    finally:
        aborting.cancel()


async def _keep_aborting(server: InternalServer) -> None:
    while True:
        await asyncio.sleep(_FLUSH_S)
        for transport in tuple(server.asyncio_transports):
            transport.abort()
