"""Asks an OPC UA server whether it answers, with a Hello message (OPC 10000-6, 7.1.2)."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from edge.app.connection_advice import connection_advice
from edge.links.connection_fault import fault_of
from edge.model.finding import HealthFinding, failing, ok

PORT = 4840
ANSWERS = frozenset({b"ACKF", b"ERRF"})
"""Answers of an OPC UA server to a Hello message."""
CONNECT_WITHIN_S = 3.0
_HELLO_HEAD = struct.Struct("<4sI5I")


async def examine_server(subject: str, url: str, waiting: str) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to another OPC UA server; `waiting` is what waits for it."""
    parts = urlsplit(url)
    try:
        answer = await send_hello(parts.hostname or "", parts.port or PORT, url)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = f"{connection_advice(fault_of(error))} {waiting[:1].upper()}{waiting[1:]}."
        yield failing(subject, f"no answer at {url}: {str(error) or 'too slow'}", advice)
    else:
        if answer in ANSWERS:
            yield ok(subject, f"answers at {url}")
        else:
            yield failing(subject, f"the program at {url} is not an OPC UA server", "Correct its url.")


async def send_hello(host: str, port: int, endpoint: str) -> bytes:
    """Send a Hello message and return the message type of the answer."""
    url = endpoint.encode()
    hello = _HELLO_HEAD.pack(b"HELF", _HELLO_HEAD.size + 4 + len(url), 0, 65_536, 65_536, 0, 0)
    async with asyncio.timeout(CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(hello + struct.pack("<I", len(url)) + url)
            return await reader.readexactly(4)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
