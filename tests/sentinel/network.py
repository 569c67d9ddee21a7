"""A network between processes of this host: each direction between any two of them can be cut and healed.

Every node listens behind a port of the network, which is the address that all others know, and opens connections from
a loopback address of its own, by which the network knows it. What is sent in a direction that is cut waits, as TCP
repeats it, and arrives after the repair: no end sees the loss, not even a closed connection.
"""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any, Self

OUTSIDE = "outside"
"""The source of a connection that no node of the network has opened."""

Pair = tuple[str, str]


class Network:
    """Forwards the connections between nodes; its event loop runs on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._names: dict[str, str] = {}
        self._cut: set[Pair] = set()
        self._repaired: dict[Pair, asyncio.Event] = defaultdict(asyncio.Event)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Close every connection and end the thread."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def add(self, name: str) -> str:
        """Return the address from which a node opens its connections."""
        address = f"127.0.1.{len(self._names) + 1}"
        self._names[address] = name
        return address

    def listen(self, name: str, port: int) -> int:
        """Return the port of the network that leads to a port of a node."""

        async def serve() -> int:
            def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = self._loop.create_task(self._forward(name, port, reader, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                # A task that is cancelled before its first step closes nothing.
                task.add_done_callback(lambda _: writer.transport.abort())

            server = await asyncio.start_server(forward, "127.0.0.1", 0)
            self._servers.append(server)
            address: tuple[str, int] = server.sockets[0].getsockname()
            return address[1]

        number: int = self._run(serve())
        return number

    def cut(self, sources: Iterable[str], targets: Iterable[str], *, both: bool = True) -> None:
        """Cut what goes from each source to each target, and with `both` the opposite direction."""
        pairs = {(source, target) for source in sources for target in targets}
        pairs |= {(target, source) for source, target in pairs} if both else set()
        self._loop.call_soon_threadsafe(self._set, self._cut | pairs)

    def join(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Repair both directions between these nodes."""
        pairs = {(source, target) for source in sources for target in targets}
        pairs |= {(target, source) for source, target in pairs}
        self._loop.call_soon_threadsafe(lambda: self._set(self._cut - pairs))

    def heal(self) -> None:
        """Repair every direction."""
        self._loop.call_soon_threadsafe(self._set, set())

    def _set(self, cut: set[Pair]) -> None:
        for pair in self._cut - cut:
            self._repaired.pop(pair, asyncio.Event()).set()
        self._cut = cut

    async def _until_open(self, *pairs: Pair) -> None:
        while cut := [pair for pair in pairs if pair in self._cut]:
            await self._repaired[cut[0]].wait()

    async def _forward(
        self, target: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward one connection until both ends have closed it."""
        source = self._names.get(writer.get_extra_info("peername")[0], OUTSIDE)
        way, back = (source, target), (target, source)
        with contextlib.ExitStack() as stack:
            stack.callback(writer.close)
            try:
                # A handshake needs both directions.
                await self._until_open(way, back)
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            stack.callback(far_writer.close)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(way, reader, far_writer))
                pumps.create_task(self._pump(back, far_reader, writer))

    async def _pump(self, pair: Pair, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one direction; its end is forwarded, too."""
        try:
            while data := await reader.read(1 << 16):
                await self._until_open(pair)
                writer.write(data)
                await writer.drain()
            await self._until_open(pair)
            writer.write_eof()
        except OSError:
            await self._until_open(pair)
            writer.transport.abort()

    async def _close(self) -> None:
        self._set(set())
        for server in self._servers:
            server.close()
        # A connection that was accepted last becomes a task within the next turns of the loop, and a transport that is
        # aborted closes its socket within those after that.
        for _ in range(2):
            await self._turn()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._turn()

    async def _turn(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)
