"""Registration at a discovery server: node-opcua over an encrypted channel, and an unavailable server."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from asyncua import ua

from edge.app.features import discovery_capabilities
from edge.config import OpcuaEquipmentSettings, OpcuaSettings, Settings
from edge.features.opcua_extras.registration import (
    RegisteredApplication,
    _register,
    application_of,
    keep_registered,
    reachable_url,
    register,
    register_at,
)
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.opcua.client_transport import BoundedClient
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri
from tests.conftest import WaitUntil
from tests.free_ports import free_port

ROOT = Path(__file__).parents[3]
FAST = (0.01, 0.02)


@asynccontextmanager
async def discovery_server(port: int, folder: Path, trusted: Path) -> AsyncIterator[list[list[dict[str, Any]]]]:
    """Run node-opcua's; yield the lists of servers that it had, the last one at the end."""
    process = await asyncio.create_subprocess_exec(
        *("node", ROOT / "tests" / "uaserver" / "node" / "discovery.js", str(port), folder, trusted),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(ROOT / ".node" / "node_modules")},
    )
    seen: list[list[dict[str, Any]]] = []

    async def listen() -> None:
        assert process.stdout
        async for line in process.stdout:
            seen.extend([json.loads(line)["servers"]] if line.startswith(b'{"servers"') else [])

    try:
        async with background_task(listen(), "discovery server"):
            yield seen
    finally:
        process.kill()
        await process.wait()


@pytest.mark.long
async def test_server_is_registered_and_unregistered_at_a_discovery_server(
    tmp_path: Path, wait_until: WaitUntil
) -> None:
    port, pki, trusted = free_port(), tmp_path / "pki", tmp_path / "trusted"
    certificates.load_or_make(pki, application_uri("edge"), ["127.0.0.1"])
    trusted.mkdir()
    url = f"opc.tcp://127.0.0.1:{port}"
    settings = OpcuaSettings(pki=str(pki), trusted=str(trusted), discovery_server=url)
    application = application_of("edge", "opc.tcp://127.0.0.1:4840", ("DA", "AC"))
    async with discovery_server(port, tmp_path / "lds", pki / "own.der") as seen:
        await wait_until(lambda: seen)
        with pytest.raises(Unavailable, match="is not trusted"):
            await register_at(settings, application)(is_online=True)
        shutil.copy(tmp_path / "lds" / "lds.der", trusted / "lds.der")
        keeping = keep_registered(register_at(settings, application), 60, (0.5, 1), goodbye_s=60)
        async with background_task(keeping, "registration"):
            await wait_until(lambda: seen[-1])
            (found,) = seen[-1]
        await wait_until(lambda: seen[-1] == [])
    assert found["uri"] == application_uri("edge")
    assert found["urls"] == ["opc.tcp://127.0.0.1:4840"]
    assert found["mdns"] == [{"name": "microdcs-edge edge", "capabilities": ["DA", "AC"]}]


async def test_registration_is_retried_until_the_discovery_server_answers(
    wait_until: WaitUntil, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[bool] = []

    async def register(*, is_online: bool) -> None:
        calls.append(is_online)
        if 1 < len(calls) < 5:
            raise Unavailable("away", "start it")

    async with background_task(keep_registered(register, 0.01, FAST), "registration"):
        await wait_until(lambda: len(calls) > 6)
    assert calls[-1] is False
    assert all(calls[:-1])
    log = capsys.readouterr().out
    assert (log.count("registration failed"), log.count("opcua server registered")) == (1, 2)


async def test_server_that_was_never_registered_is_not_unregistered(wait_until: WaitUntil) -> None:
    calls: list[bool] = []

    async def register(*, is_online: bool) -> None:
        calls.append(is_online)
        raise Unavailable("away", "")

    async with background_task(keep_registered(register, 0.01, FAST), "registration"):
        await wait_until(lambda: len(calls) > 2)
    assert all(calls)


@pytest.mark.parametrize(
    ("telemetry", "found"),
    [
        (TelemetrySettings(mode="off", history_days=1), ("DA",)),
        (TelemetrySettings(), ("DA", "AC")),
        (TelemetrySettings(history_days=1), ("DA", "AC", "HD")),
    ],
)
def test_discovery_announces_what_the_settings_switch_on(telemetry: TelemetrySettings, found: tuple[str, ...]) -> None:
    assert discovery_capabilities(Settings(sections={"telemetry": telemetry})) == found


def test_registered_address_is_the_one_that_clients_reach() -> None:
    application = application_of("edge", "opc.tcp://gateway.plant:4840", ("DA", "HD"))
    assert (application.urls, application.capabilities) == (("opc.tcp://gateway.plant:4840",), ("DA", "HD"))


APPLICATION = RegisteredApplication("urn:a", "urn:p", "a", ("opc.tcp://a:4840",), ("DA",))


class _OldDiscoveryServer:
    """The services of a discovery server; `fault` is what it answers to RegisterServer2."""

    def __init__(self, fault: int) -> None:
        self.registered: list[ua.RegisteredServer] = []
        self._fault = fault

    async def register_server2(self, _parameters: Any) -> None:
        raise ua.UaStatusCodeError(self._fault)

    async def register_server(self, server: ua.RegisteredServer) -> None:
        self.registered.append(server)


class _Connected:
    def __init__(self, services: _OldDiscoveryServer) -> None:
        self.uaclient = services


async def test_register_server_is_called_if_register_server_2_is_unknown() -> None:
    services = _OldDiscoveryServer(ua.StatusCodes.BadServiceUnsupported)
    await _register(cast("BoundedClient", _Connected(services)), APPLICATION, is_online=True)
    (server,) = services.registered
    assert (server.ServerUri, server.DiscoveryUrls, server.IsOnline) == ("urn:a", ["opc.tcp://a:4840"], True)


async def test_refused_registration_is_not_sent_to_the_older_service() -> None:
    services = _OldDiscoveryServer(ua.StatusCodes.BadSecurityChecksFailed)
    with pytest.raises(ua.UaStatusCodeError):
        await _register(cast("BoundedClient", _Connected(services)), APPLICATION, is_online=True)
    assert services.registered == []


async def test_unreachable_discovery_server_raises_unavailable() -> None:
    url = f"opc.tcp://127.0.0.1:{free_port()}"
    settings = OpcuaEquipmentSettings(kind="opcua", type_ids=("",), url=url, security="none")
    with pytest.raises(Unavailable, match="does not register us"):
        await register(settings, APPLICATION, is_online=True)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("opc.tcp://0.0.0.0:4840", f"opc.tcp://{socket.gethostname()}:4840"),
        ("opc.tcp://[::]:4840", f"opc.tcp://{socket.gethostname()}:4840"),
        ("opc.tcp://[::1]:4841", "opc.tcp://[::1]:4841"),
        ("opc.tcp://gateway.plant:4840", "opc.tcp://gateway.plant:4840"),
    ],
)
def test_address_for_all_interfaces_has_the_name_of_the_host(endpoint: str, url: str) -> None:
    assert reachable_url(endpoint) == url
