"""The server connects to clients that listen (OPC 10000-6, 7.1.3): node-opcua, and listeners that misbehave."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import structlog
from asyncua import ua

from edge.config import OpcuaSettings
from edge.features.opcua_extras.reverse_connect import (
    CONNECTIONS,
    DialedConnection,
    dial,
    reverse_hello,
    wait_at_clients,
)
from edge.foundation.task_group import background_task
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri
from edge.uaserver.server import UaServer
from tests.conftest import WaitUntil
from tests.free_ports import free_port
from tests.uaserver.clients import make_application, make_settings, with_users
from tests.uaserver.running import MACHINES, SETTINGS, served
from tests.uaserver.test_server_node_opcua import OtherMake, other_make
from tests.uaserver.wire import Wire

pytestmark = pytest.mark.slow

FAST = (0.01, 0.05)
URI = application_uri("edge")
REFUSED = struct.pack("<4sIIi", b"ERRF", 16, int(ua.StatusCodes.BadTcpEndpointUrlInvalid), -1)


class Listener:
    """A client that listens: its connections in their order, each after a ReverseHello."""

    def __init__(self, port: int) -> None:
        self.url = f"opc.tcp://127.0.0.1:{port}"
        self.accepted: asyncio.Queue[Wire] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self.greetings: list[bytes] = []

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readexactly(8)
            (size,) = struct.unpack_from("<I", head, 4)
            self.greetings.append(head + await reader.readexactly(size - 8))
            self.accepted.put_nowait(Wire(reader, writer))

    async def next(self) -> Wire:
        async with asyncio.timeout(60):
            return await self.accepted.get()


@contextlib.asynccontextmanager
async def listening(port: int) -> AsyncIterator[Listener]:
    listener = Listener(port)
    server = await asyncio.start_server(listener.accept, "127.0.0.1", port)
    try:
        yield listener
    finally:
        server.close()
        for writer in listener.writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def connecting(port: int, settings: OpcuaSettings = SETTINGS) -> AsyncIterator[UaServer]:
    """Serve a machine to a client that listens on this port."""
    async with served(settings, MACHINES[:1]) as server:
        call = partial(dial, server.listener, reverse_hello(URI, server.endpoint))
        waiting = wait_at_clients(call, (f"opc.tcp://127.0.0.1:{port}",), FAST)
        async with background_task(waiting, "reverse connect"):
            yield server


async def read(client: OtherMake, **at: int) -> str:
    status: str = (await client.ask("read", part="JobOrderControl", name="JobOrderList", **at))["status"]
    return status


def write_certificate(directory: Path) -> str:
    """Write the certificate of the server without its key; return the file."""
    certificates.load_or_make(Path(SETTINGS.pki), URI, ("127.0.0.1",))
    own = Path(SETTINGS.pki, "own.pem").read_text()
    file = directory / "server.pem"
    file.write_text(own[own.index("-----BEGIN CERTIFICATE-----") :])
    return str(file)


@pytest.mark.long
async def test_node_opcua_reads_over_a_reverse_connection(tmp_path: Path) -> None:
    port, settings = free_port(), with_users(make_settings(tmp_path))
    application = make_application(tmp_path / "scada")
    application.trusted_by(settings)
    listen = {"listen": f"opc.tcp://127.0.0.1:{port}", "serverCertificate": write_certificate(tmp_path)}
    async with connecting(port, settings) as server:
        # The client does not know where the server listens.
        for _ in range(2):
            async with other_make("opc.tcp://nowhere.invalid", application, **listen) as client:
                assert await read(client) == "Good"
                other = await client.ask("enter", user="observer", expected={"serverUri": URI})
                assert await read(client, at=other) == "Good"
                assert server.sessions == 2
        application.trusted_by_nobody(settings)
        with pytest.raises(AssertionError, match="error"):
            async with other_make("opc.tcp://nowhere.invalid", application, **listen):
                pass


async def test_reverse_hello_contains_server_uri_and_endpoint() -> None:
    port = free_port()
    async with listening(port) as listener, connecting(port) as server:
        await listener.next()
        texts = b"".join(struct.pack("<i", len(data)) + data for data in (URI.encode(), server.endpoint.encode()))
        assert listener.greetings[0] == struct.pack("<4sI", b"RHEF", 8 + len(texts)) + texts
    with pytest.raises(ValueError, match="up to 4095 bytes"):
        reverse_hello("u" * 4096, "opc.tcp://a")


async def test_used_reverse_connection_is_replaced_by_a_new_one() -> None:
    port = free_port()
    async with listening(port) as listener, connecting(port) as server:
        used = []
        for _ in range(CONNECTIONS):
            used.append(await listener.next())
            await used[-1].hello()
            await used[-1].open()
        assert len(listener.writers) == CONNECTIONS == len(server.listener.clients)
        used[0].writer.transport.abort()
        await (await listener.next()).hello()
        assert len(listener.writers) == CONNECTIONS + 1


async def test_refused_reverse_connection_and_its_recovery_are_logged_once(wait_until: WaitUntil) -> None:
    port = free_port()
    with structlog.testing.capture_logs() as logs:
        async with listening(port) as listener, connecting(port):
            for _ in range(3):
                (await listener.next()).writer.write(REFUSED)
            wire = await listener.next()
            await wire.hello()
            await wire.open()
            await wait_until(lambda: len([entry for entry in logs if "reverse" in entry["event"]]) == 2)
    found = [entry for entry in logs if "reverse" in entry["event"]]
    assert [entry["event"] for entry in found] == [
        "opcua reverse connection failed, retrying",
        "opcua reverse connection restored",
    ]
    assert (found[0]["reason"], found[0]["client"]) == ("BadTcpEndpointUrlInvalid", listener.url)


async def test_reverse_connection_reaches_a_client_that_starts_later(wait_until: WaitUntil) -> None:
    port = free_port()
    with structlog.testing.capture_logs() as logs:
        async with connecting(port):
            await wait_until(lambda: any("reverse" in entry["event"] for entry in logs))
            async with listening(port) as listener:
                await (await listener.next()).hello()
    assert [entry["event"] for entry in logs if "reverse" in entry["event"]] == [
        "opcua reverse connection failed, retrying"
    ]


async def test_silent_listener_is_disconnected_and_connected_again() -> None:
    port = free_port()
    async with listening(port) as listener, connecting(port) as server:
        server.listener.activation_s = 0.1
        (await listener.next()).writer.transport.abort()
        await (await listener.next()).is_ended()
        await listener.next()


@pytest.mark.parametrize("bytes_of_client", [b"GET / HTTP/1.1\r\n\r\n", b"HELF\xff\xff\xff\xff", b"MSGF" * 20])
async def test_listener_that_is_not_an_opc_ua_client_is_disconnected(bytes_of_client: bytes) -> None:
    port = free_port()
    async with listening(port) as listener, connecting(port) as server:
        first = await listener.next()
        first.writer.write(bytes_of_client)
        async with asyncio.timeout(60):
            # Without further data but the reason (OPC 10000-6, 7.1.5).
            assert (await first.reader.read())[:4] in {b"", b"ERRF"}
        await listener.next()
        assert len(server.listener.clients) == 1


async def test_server_at_its_limit_opens_no_reverse_connection(wait_until: WaitUntil) -> None:
    port = free_port()
    settings = OpcuaSettings(endpoint=SETTINGS.endpoint, security="none", pki=SETTINGS.pki, max_connections=1)
    with structlog.testing.capture_logs() as logs:
        async with listening(port) as listener, connecting(port, settings) as server:
            first = await listener.next()
            await first.hello()
            await first.open()
            await wait_until(lambda: any("reverse" in entry["event"] for entry in logs))
            assert (len(listener.writers), len(server.listener.clients)) == (1, 1)
            assert "all connections are in use" in str(logs)


async def test_invalid_host_name_of_a_client_is_reported(wait_until: WaitUntil) -> None:
    async def connect(host: str, number: int) -> DialedConnection:
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, number)
        raise AssertionError(host)

    with structlog.testing.capture_logs() as logs:
        async with background_task(wait_at_clients(connect, ("opc.tcp://a..b",), FAST), "reverse connect"):
            await wait_until(lambda: any("reverse" in entry["event"] for entry in logs))
    assert [entry["client"] for entry in logs if "reverse" in entry["event"]] == ["opc.tcp://a..b"]
