"""The OPC UA server opens with the gateway, or later when its address becomes available."""

import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.errors import SettingsError, unwrap_group
from tests.app.running import opcua_in
from tests.conftest import WaitUntil


def accepts(port: int) -> bool:
    """Return whether a server listens on a port of this host."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def gateway_at(redis: RedisSettings, directory: Path, endpoint: str) -> AsyncIterator[str]:
    served = msgspec.structs.replace(opcua_in(directory), endpoint=endpoint)
    async with open_gateway(Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=served)) as summary:
        yield summary


async def test_endpoint_that_becomes_free_is_served_later(
    redis: RedisSettings, tmp_path: Path, wait_until: WaitUntil
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    endpoint = f"opc.tcp://127.0.0.1:{taken.getsockname()[1]}"
    async with gateway_at(redis, tmp_path, endpoint) as summary:
        assert summary.startswith(f"serving, degraded: opcua.endpoint: cannot listen on {endpoint}")
        port = taken.getsockname()[1]
        taken.close()
        await wait_until(lambda: accepts(port), 20)


async def test_address_that_no_interface_has_yet_leaves_the_gateway_serving(
    redis: RedisSettings, tmp_path: Path
) -> None:
    async with gateway_at(redis, tmp_path, "opc.tcp://192.0.2.1:4840") as summary:
        assert "degraded: opcua.endpoint: cannot listen on opc.tcp://192.0.2.1:4840" in summary


async def test_unusable_certificate_directory_is_a_settings_error(redis: RedisSettings, tmp_path: Path) -> None:
    (tmp_path / "pki").write_text("a file, not a directory")
    with pytest.raises(SettingsError, match=r"opcua\.pki"), unwrap_group():
        async with gateway_at(redis, tmp_path, "opc.tcp://127.0.0.1:0"):
            pytest.fail("it was opened")
