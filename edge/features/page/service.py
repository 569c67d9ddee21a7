"""Serves the station page; retries in the background while its address is taken, as the OPC UA server does."""

import asyncio
import contextlib
import functools
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from edge.access.login import Users
from edge.app.parts import GatewayParts, Works
from edge.features.page.settings import WebSettings
from edge.features.page.tools import LogMemory, remembered_log
from edge.foundation.errors import SettingsError
from edge.foundation.text import Text
from edge.station.jobs import JobService
from edge.uaserver.namespaces import application_uri


class PageParts(Struct, frozen=True):
    """The parts that the page works with."""

    core: GatewayParts
    jobs: JobService
    users: Users
    settings_file: Path | None = None


async def open_page(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> None:
    """Serve the page until the stack closes. Its libraries are imported in a thread: nothing waits for them.

    Raises SettingsError for a certificate that cannot be used, and without the libraries.
    """
    if works.users is None:
        return
    page = PageParts(core, works.jobs, works.users, works.settings_file)
    tls = await _tls_context(core) if core.settings.section(WebSettings).is_tls else None
    await core.keep_running(stack, "station page", functools.partial(_serve, page, tls))


async def _serve(page: PageParts, tls: ssl.SSLContext | None) -> None:
    with remembered_log() as memory:
        serve = await asyncio.to_thread(_load, page, memory)
        await serve(tls)


def _load(page: PageParts, memory: LogMemory) -> Callable[[ssl.SSLContext | None], Awaitable[None]]:
    """Import what serves the page, and return it. Raises SettingsError without the libraries."""
    try:
        from edge.features.page.serving import serve_page, services_of  # noqa: PLC0415 - in a thread, with an extra
    except ImportError as error:
        problem = Text.of("web.listen: needs a library that is not installed: {reason}", reason=error)
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[web]'") from None
    return functools.partial(serve_page, page.core, services_of(page, memory))


async def _tls_context(parts: GatewayParts) -> ssl.SSLContext:
    """Return the TLS context with the certificate of the settings, else that of the OPC UA server."""
    settings = parts.settings.section(WebSettings)
    if settings.shares_certificate:
        # Imported only for the certificate of the OPC UA server.
        from edge.uaserver import certificates  # noqa: PLC0415

        directory = Path(parts.settings.opcua.pki)
        uri = application_uri(parts.settings.gateway.name)
        hosts = certificates.server_hosts(parts.settings.opcua, settings.address[0])
        await asyncio.to_thread(certificates.load_or_make, directory, uri, hosts)
        cert_file, key_file = str(directory / "own.pem"), ""
    else:
        cert_file, key_file = settings.cert_file, settings.key_file
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        problem = Text.of("web.cert_file: {cert_file} cannot be used: {reason}", cert_file=cert_file, reason=error)
        raise SettingsError([problem], "Name a certificate and its private key, both as PEM.") from error
    return context
