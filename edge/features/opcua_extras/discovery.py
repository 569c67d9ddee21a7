"""Registers an OPC UA server at a discovery server (OPC 10000-4, 5.5.5 and 5.5.6), over an encrypted channel."""

import asyncio

from asyncua import ua
from msgspec import Struct

from edge.config import OpcuaEquipmentSettings
from edge.links.opcua_requests import translate_errors
from edge.links.opcua_security import secure
from edge.opcua.client_transport import BoundedClient

_REQUEST_SECONDS = 5.0
_WITHIN_SECONDS = 20.0
_KEEP_ALIVE_SECONDS = 60.0
_UNKNOWN_SERVICE = frozenset(
    {ua.StatusCodes.BadServiceUnsupported, ua.StatusCodes.BadNotImplemented, ua.StatusCodes.BadNotSupported}
)


class RegisteredApplication(Struct, frozen=True):
    """What a discovery server publishes about a server; `capabilities` are the identifiers of OPC 10000-12, annex D."""

    uri: str
    product_uri: str
    name: str
    urls: tuple[str, ...]
    capabilities: tuple[str, ...]


async def register(settings: OpcuaEquipmentSettings, application: RegisteredApplication, *, is_online: bool) -> None:
    """Register an application at the server of the settings, or unregister it when it goes offline.

    RegisterServer is called where RegisterServer2 is not known. Raises Unavailable when the discovery server cannot be
    reached, is not trusted or declines; SettingsError when our certificate cannot be used.
    """
    client = BoundedClient(settings.url, _REQUEST_SECONDS, _KEEP_ALIVE_SECONDS)
    failure = f"the OPC UA discovery server {settings.url} does not register us"
    with translate_errors(failure, "Is it running, and does it trust the certificate of this gateway?"):
        try:
            async with asyncio.timeout(_WITHIN_SECONDS):
                await secure(client, settings)
                await client.connect_sessionless()
                await _register(client, application, is_online=is_online)
                await client.close_secure_channel()
        finally:
            client.disconnect_socket()


async def _register(client: BoundedClient, application: RegisteredApplication, *, is_online: bool) -> None:
    server = ua.RegisteredServer(
        ServerUri=application.uri,
        ProductUri=application.product_uri,
        ServerNames=[ua.LocalizedText(application.name)],
        ServerType=ua.ApplicationType.Server,
        DiscoveryUrls=list(application.urls),
        IsOnline=is_online,
    )
    mdns = ua.MdnsDiscoveryConfiguration(application.name, list(application.capabilities))
    try:
        await client.uaclient.register_server2(ua.RegisterServer2Parameters(server, [mdns]))
    except ua.UaStatusCodeError as error:
        if error.code not in _UNKNOWN_SERVICE:
            raise
        await client.uaclient.register_server(server)
