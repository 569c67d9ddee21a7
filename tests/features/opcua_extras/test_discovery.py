"""Registration at a discovery server: fallback to RegisterServer, and an unavailable server."""

from typing import Any, cast

import pytest
from asyncua import ua

from edge.config import OpcuaEquipmentSettings
from edge.features.opcua_extras.discovery import RegisteredApplication, _register, register
from edge.foundation.errors import Unavailable
from edge.opcua.client_transport import BoundedClient
from tests.free_ports import free_port

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
