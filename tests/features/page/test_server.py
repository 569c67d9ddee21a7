"""The server listens, refuses requests beyond its limits, and closes its connections when it stops."""

import asyncio
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from edge.access.login import Users
from edge.features.page.server import ConnectionBounds, WebAddress, serve
from edge.features.page.services import WebServices
from edge.foundation.errors import Unavailable
from edge.uaserver.certificates import load_or_make
from tests.conftest import WaitUntil
from tests.features.page.serving import Browser, services_of, serving
from tests.station.plant import Plant


async def test_taken_port_is_reported_with_advice(services: WebServices) -> None:
    async with serving(services) as browser:
        address = WebAddress("127.0.0.1", browser.port)
        with pytest.raises(Unavailable, match="cannot listen for browsers at") as caught:
            async with serve(None, address, ConnectionBounds(1, 1)):  # type: ignore[arg-type]
                pass
    assert "another program" in caught.value.advice


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - on a port that is free, for a moment
async def test_address_of_all_interfaces_is_named_by_the_host(host: str) -> None:
    """The log named https://0.0.0.0:8443, which a person cannot open."""
    async with serve(None, WebAddress(host, 0), ConnectionBounds(1, 1)) as url:  # type: ignore[arg-type]
        assert urlsplit(url).hostname == socket.gethostname().lower()
        assert urlsplit(url).port


async def test_stop_ends_streams_and_idle_connections(services: WebServices) -> None:
    async with serving(services) as stranger:
        eve = await stranger.logged_in("eve")
        stream, writer = await eve.connect()
        writer.write(f"GET /api/v1/events HTTP/1.1\r\nhost: x\r\ncookie: {eve.cookie}\r\n\r\n".encode())
        await stream.readuntil(b"changes follow")
        idle, other = await eve.connect()
    async with asyncio.timeout(60):
        await stream.read()
        await idle.read()
    writer.close()
    other.close()
    assert services.events.subscribers == 0


async def test_tls_is_served_with_the_certificate_of_opcua(
    plant: Plant, users: Users, tmp_path: Path, wait_until: WaitUntil
) -> None:
    await asyncio.to_thread(load_or_make, tmp_path / "pki", "urn:x", ["127.0.0.1", "localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pki" / "own.pem")
    bounds = ConnectionBounds(2, 2)
    client = ssl.create_default_context()
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    async with serving(services_of(plant, users, is_tls=True), bounds, tls=context) as found:
        browser = Browser(found.host, found.port, tls=client)
        reply = await browser.post("/api/v1/session", {"name": "eve", "password": "correct horse"})
        assert reply.status == 200
        assert reply.headers["set-cookie"].startswith("__Host-edge-session=")
        assert "; Secure" in reply.headers["set-cookie"]
        # A client without a handshake counts, too: it must not hold a descriptor for nothing.
        await wait_until(lambda: not bounds.open)
        silent = [await asyncio.open_connection(found.host, found.port) for _ in range(2)]
        await wait_until(lambda: bounds.open.total() == 2)
        reader, writer = await asyncio.open_connection(found.host, found.port)
        assert await reader.read() == b""
        for stream_writer in (*(other for _, other in silent), writer):
            stream_writer.close()
        await wait_until(lambda: not bounds.open)
