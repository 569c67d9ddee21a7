"""Keeps this server registered at a discovery server, and unregisters it at the end."""

import asyncio
import contextlib
import socket
from functools import partial
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog
from asyncua import ua
from msgspec import Struct

from edge.config import OpcuaEquipmentSettings, OpcuaSettings
from edge.config.hosts import is_any_address
from edge.foundation.backoff import Backoff
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.text import Text
from edge.links.opcua_requests import translate_errors
from edge.links.opcua_security import secure
from edge.opcua.client_transport import BoundedClient
from edge.uaserver.certificates import own_path
from edge.uaserver.namespaces import PRODUCT_URI, application_uri


def reachable_url(endpoint: str) -> str:
    """Return the URL with the name of this host where the server listens on all interfaces."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    host = socket.gethostname() if is_any_address(host) else f"[{host}]" if ":" in host else host
    return f"opc.tcp://{host}:{parts.port}"


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
    failure = Text.of("the OPC UA discovery server {url} does not register us", url=settings.url)
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


logger = structlog.get_logger(__name__)

EVERY_S: Final = 300.0
"""A discovery server forgets a server that it has not heard of for ten minutes (OPC 10000-4, 5.5.5.1)."""
RETRY_S: Final = (1.0, 60.0)
GOODBYE_S: Final = 2.0
"""How long a stop waits for the discovery server."""


class Register(Protocol):
    """Registers the server, or unregisters it when it goes offline. Raises Unavailable and SettingsError."""

    async def __call__(self, *, is_online: bool) -> None:
        """Register or unregister it."""


def application_of(gateway: str, endpoint: str, capabilities: tuple[str, ...]) -> RegisteredApplication:
    """Return what a discovery server publishes about this server; `endpoint` is where it listens."""
    name, urls = f"microdcs-edge {gateway}", (reachable_url(endpoint),)
    return RegisteredApplication(application_uri(gateway), PRODUCT_URI, name, urls, capabilities)


def register_at(settings: OpcuaSettings, application: RegisteredApplication) -> Register:
    """Return how to register at the discovery server of the settings, with the certificate of this server."""
    own = str(own_path(Path(settings.pki)))
    server = OpcuaEquipmentSettings(
        kind="opcua",
        type_ids=("",),
        url=settings.discovery_server,
        cert_file=own,
        key_file=own,
        trusted=settings.trusted,
    )

    return partial(register, server, application)


async def keep_registered(
    register_server: Register,
    every_s: float = EVERY_S,
    retry_s: tuple[float, float] = RETRY_S,
    goodbye_s: float = GOODBYE_S,
) -> None:
    """Register again and again until cancelled; then unregister. One outage of the discovery server is logged once."""
    shortest, longest = retry_s
    backoff = Backoff(shortest, longest, stable=longest)
    is_registered, is_reported = False, False
    try:
        while True:
            try:
                await register_server(is_online=True)
            except (Unavailable, SettingsError) as error:
                if not is_reported:
                    reason = error.message if isinstance(error, Unavailable) else str(error)
                    logger.warning("opcua registration failed, retrying", reason=reason, advice=error.advice)
                is_reported = True
                await backoff.pause()
                continue
            if is_reported or not is_registered:
                logger.info("opcua server registered")
            is_registered, is_reported = True, False
            await asyncio.sleep(every_s)
    finally:
        if is_registered:
            with contextlib.suppress(Unavailable, SettingsError, TimeoutError):
                async with asyncio.timeout(goodbye_s):
                    await register_server(is_online=False)
