"""A server that answers but cannot be the store of a gateway is refused, whatever part of the address leads to it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.features.admin.store_check import examine_store
from edge.foundation.errors import EdgeError, SettingsError
from edge.store.connection import CommandConnection, Endpoint
from edge.store.observer import open_observer
from edge.store.open_store import open_store
from edge.store.store_state import ProblemKind, StoreProblem, find_problems
from tests.free_ports import free_port
from tests.store.sentinel_line import open_line, until
from tests.store.servers import Server, own_server, refusal_of
from tests.store.tls import write_certificate

_SLOTS = 16_384


async def _call(server: Server, *command: str | int) -> object:
    connection = CommandConnection(Endpoint(path=server.url[7:], is_store=False))
    try:
        (reply,) = await connection.call(command)
    finally:
        connection.close()
    return reply


@contextlib.asynccontextmanager
async def _cluster(directory: Path, nodes: int) -> AsyncIterator[list[Server]]:
    """Run a Redis Cluster that serves all slots."""
    async with contextlib.AsyncExitStack() as stack:
        servers: list[Server] = []
        for number in range(nodes):
            own = directory / str(number)
            own.mkdir()
            port, bus = free_port(), free_port()
            options = ("--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(bus))
            server = await stack.enter_async_context(own_server(own, *options, program="redis-server"))
            servers.append(server)
            await _call(
                server, "CLUSTER", "ADDSLOTSRANGE", number * _SLOTS // nodes, (number + 1) * _SLOTS // nodes - 1
            )
            await _call(servers[0], "CLUSTER", "MEET", "127.0.0.1", port, bus)

        async def serves() -> bool:
            return all(["cluster_state:ok" in str(await _call(server, "CLUSTER", "INFO")) for server in servers])

        await until(serves)
        yield servers


async def _problems(url: str) -> tuple[StoreProblem, ...]:
    async with open_observer(RedisSettings(url=url)) as observer:
        return find_problems(await observer.read())


async def _examined(url: str) -> EdgeError:
    with pytest.raises(EdgeError) as caught:
        async for _ in examine_store(RedisSettings(url=url)):
            pass
    return caught.value


@pytest.mark.parametrize("nodes", [1, 3])
async def test_each_node_of_a_working_cluster_is_refused(tmp_path: Path, nodes: int) -> None:
    """Before, the owner of the first key answered with the error of a script: "Report this with the log."."""
    async with _cluster(tmp_path, nodes) as servers:
        for server in servers:
            for refused in (await refusal_of(server.url), await _examined(server.url)):
                assert isinstance(refused, SettingsError)
                assert "Redis Cluster" in refused.message
                assert "redis+sentinel://" in refused.advice


async def test_store_status_reports_a_cluster(tmp_path: Path) -> None:
    """The command found no problem with any node of a cluster."""
    async with _cluster(tmp_path, 1) as servers:
        (problem,) = await _problems(servers[0].url)
    assert problem.kind is ProblemKind.PRIMARY_AWAY
    assert "Redis Cluster" in str(problem.found)
    assert "redis+sentinel://" in str(problem.advice)


@pytest.mark.parametrize("database", ["", "/1"])
async def test_port_of_a_sentinel_given_as_a_server_is_refused(tmp_path: Path, database: str) -> None:
    """Before: unknown command EVALSHA, "Report this with the log."."""
    async with open_line(tmp_path, nodes=1) as line:
        url = f"redis://127.0.0.1:{line.sentinels[0].port}{database}"
        refused, (problem,) = await refusal_of(url), await _problems(url)
    assert isinstance(refused, SettingsError)
    for found, advice in ((refused.message, refused.advice), (str(problem.found), str(problem.advice))):
        assert "leads to a sentinel" in found
        assert 'url = "redis+sentinel://host:port,host:port/service"' in advice


async def test_server_that_checks_its_clients_asks_for_their_certificate(tmp_path: Path) -> None:
    """As Redis does by default with TLS; the advice was to start the server, or to check the network."""
    files, port = write_certificate(tmp_path), free_port()
    given = ("--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key))
    trusted = ("--tls-ca-cert-file", str(files.certificate))
    ports = ("--port", "0", "--tls-port", str(port))
    async with own_server(tmp_path, *ports, *given, *trusted, program="redis-server"):
        settings = RedisSettings(url=f"rediss://127.0.0.1:{port}", ca_file=str(files.certificate))
        with pytest.raises(EdgeError) as caught:
            async with open_store(settings, None):
                pass
    assert "cert_file and key_file" in caught.value.advice
