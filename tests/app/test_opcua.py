"""The OPC UA server opens with the gateway, or later when its address becomes available."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.foundation.errors import SettingsError, unwrap_group
from edge.uaserver.namespaces import Namespace
from tests.app.running import opcua_in
from tests.conftest import WaitUntil
from tests.free_ports import free_port
from tests.opcua_client import patient_client

pytestmark = pytest.mark.slow


def accepts(port: int) -> bool:
    """Return whether a server listens on a port of this host."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def gateway_at(redis: RedisSettings, directory: Path, endpoint: str) -> AsyncIterator[str]:
    served = msgspec.structs.replace(opcua_in(directory), endpoint=endpoint)
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served)) as gateway:
        yield gateway.serving


async def test_endpoint_in_use_is_served_once_it_is_free(
    redis: RedisSettings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    taken = socket.create_server(("127.0.0.1", free_port()))
    endpoint = f"opc.tcp://127.0.0.1:{taken.getsockname()[1]}"
    async with gateway_at(redis, tmp_path, endpoint) as serving:
        assert serving.startswith(f"serving, degraded: opcua.endpoint: cannot listen on {endpoint}")
        port = taken.getsockname()[1]
        taken.close()
        await wait_until(lambda: accepts(port))
        async with patient_client(endpoint) as client:
            assert len(await client.get_namespace_array()) > Namespace.ALARMS, "telemetry has not added its part again"


async def test_gateway_serves_while_no_interface_has_the_opcua_address(redis: RedisSettings, tmp_path: Path) -> None:
    async with gateway_at(redis, tmp_path, "opc.tcp://192.0.2.1:4840") as serving:
        assert "degraded: opcua.endpoint: cannot listen on opc.tcp://192.0.2.1:4840" in serving


async def test_gateway_connects_to_a_listening_client(redis: RedisSettings, tmp_path: Path) -> None:
    greeted: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not greeted.done():
            greeted.set_result(await reader.readexactly(8))
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listener:
        url = f"opc.tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        served = msgspec.structs.replace(opcua_in(tmp_path), reverse_connect=(url,))
        async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served)):
            async with asyncio.timeout(60):
                assert (await greeted).startswith(b"RHEF")


async def test_unusable_certificate_directory_is_a_settings_error(redis: RedisSettings, tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("a file, not a directory")
    with pytest.raises(SettingsError, match=r"opcua\.pki"), unwrap_group():
        async with gateway_at(redis, tmp_path, "opc.tcp://127.0.0.1:0"):
            pytest.fail("it was opened")
