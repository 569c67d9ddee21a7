"""The gateway serves its page, and starts without it when the port is in use."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.features.page.settings import WebSettings
from edge.foundation.errors import SettingsError
from tests.app.running import NO_OPCUA
from tests.conftest import WaitUntil
from tests.free_ports import free_port


def settings_of(redis: RedisSettings, directory: Path, web: WebSettings) -> Settings:
    opcua = msgspec.structs.replace(NO_OPCUA, users_file=str(directory / "users"), pki=str(directory / "pki"))
    return Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=opcua, sections={"web": web})


async def first_line(port: int) -> bytes:
    """Return the first line of an answer; wait until the page is served."""
    async with asyncio.timeout(60):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)
                continue
            writer.write(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            received = await reader.read()
            writer.close()
            await writer.wait_closed()
            return received.partition(b"\r\n")[0]


async def test_page_is_served_until_the_gateway_stops(redis: RedisSettings, tmp_path: Path) -> None:
    port = free_port()
    web = WebSettings(listen=f"127.0.0.1:{port}", kiosk="on")
    async with open_gateway(settings_of(redis, tmp_path, web)):
        assert b"200 OK" in await first_line(port)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_port_in_use_is_retried_while_the_gateway_serves(
    redis: RedisSettings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    port = free_port()
    other = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", port)
    web = WebSettings(listen=f"127.0.0.1:{port}", kiosk="on")
    with capture_logs() as logs:
        async with open_gateway(settings_of(redis, tmp_path, web)):
            await wait_until(lambda: any("cannot listen for browsers" in entry.get("reason", "") for entry in logs), 60)
            other.close()
            await other.wait_closed()
            assert b"200 OK" in await first_line(port)


async def test_invalid_certificate_is_reported(redis: RedisSettings, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    web = WebSettings(listen="tls://127.0.0.1:0", cert_file=str(broken), key_file=str(broken))
    with pytest.raises(SettingsError, match="cannot be used"):
        async with open_gateway(settings_of(redis, tmp_path, web)):
            pass
