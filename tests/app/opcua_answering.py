"""A program that answers an OPC UA Hello message, and a single finding."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edge.model.finding import HealthFinding, PublicHealthFinding, public_form


@asynccontextmanager
async def answering(words: bytes) -> AsyncIterator[str]:
    """Listen and answer every client with these bytes; return the endpoint."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(words)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"opc.tcp://0.0.0.0:{server.sockets[0].getsockname()[1]}"


async def only(findings: AsyncIterator[HealthFinding]) -> PublicHealthFinding:
    (finding,) = [public_form(item) async for item in findings]
    return finding
