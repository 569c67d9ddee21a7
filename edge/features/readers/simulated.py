"""`edge sim reader`: a simulated reader of codes, a TCP server that sends what a person types."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import click

from edge.cli.terminal.output import READY, print_text


class SimulatedReader:
    """A reader of codes at a port; each code goes to every connected gateway, and waits for the first one."""

    def __init__(self) -> None:
        self.port = 0
        self._clients: set[asyncio.StreamWriter] = set()
        self._connected = asyncio.Event()

    async def read(self, code: str) -> None:
        """Send a code, as soon as a gateway is connected."""
        while True:
            await self._connected.wait()
            if await self._send(f"{code}\r\n".encode()):
                return

    async def _send(self, line: bytes) -> bool:
        """Return whether at least one gateway was sent a line."""
        is_sent = False
        for client in tuple(self._clients):
            client.write(line)
            try:
                await client.drain()
            except ConnectionError:
                self._forget(client)
            else:
                is_sent = True
        return is_sent

    def _forget(self, client: asyncio.StreamWriter) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._connected.clear()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a gateway until it disconnects."""
        self._clients.add(writer)
        self._connected.set()
        try:
            await reader.read()
        except ConnectionError:
            pass
        finally:
            self._forget(writer)
            writer.close()


@asynccontextmanager
async def open_simulated_reader(port: int = 0) -> AsyncIterator[SimulatedReader]:
    """Open a reader at a port of the loopback address; 0 takes a free one."""
    reader = SimulatedReader()
    server = await asyncio.start_server(reader.accept, "127.0.0.1", port)
    reader.port = server.sockets[0].getsockname()[1]
    try:
        yield reader
    finally:
        server.close()


def _lines(source: Iterable[str]) -> "asyncio.Queue[str | None]":
    """Return the lines of a file as they come, then None; a thread reads them: it may wait for a person."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        for line in source:
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    return lines


@click.command(epilog="Example: edge sim reader --port 2001 < codes.txt")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=2001, show_default=True, help="Port on the loopback address."
)
def reader(port: int) -> None:
    """Run a reader of codes, for equipment of the kind `reader`.

    Each line of standard input is a code; it waits until a gateway is connected. The command ends with its input.
    """

    async def run() -> None:
        async with open_simulated_reader(port) as device:
            lines = _lines(sys.stdin)
            print_text(f"{READY}reader accepts clients at 127.0.0.1:{device.port}")
            while (line := await lines.get()) is not None:
                if line:
                    await device.read(line)

    asyncio.run(run())
