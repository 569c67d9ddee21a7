"""What `edge doctor` examines of discovery, announcement and reverse connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from edge.app.advice import CONNECT_WITHIN_S, PORT, examine_server
from edge.config import Settings
from edge.features.opcua_extras import commands as advertise
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding, ok, warning


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of what the settings switch on."""
    opcua = settings.opcua
    if not opcua.endpoint:
        return
    if opcua.discovery_server:
        subject = Text.of("OPC UA discovery server")
        yield (
            subject,
            examine_server(subject, opcua.discovery_server, Text.of("The gateway registers when it is there.")),
        )
    for url in opcua.reverse_connect:
        subject = Text.of("OPC UA client {netloc}", netloc=urlsplit(url).netloc)
        yield subject, examine_listener(subject, url)
    if opcua.advertise:
        yield "OPC UA announcement", examine_announcement(settings)


async def examine_listener(subject: str | Text, url: str) -> AsyncIterator[HealthFinding]:
    """Connect to a client that listens for the server (reverse connect)."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(CONNECT_WITHIN_S):
            _, writer = await asyncio.open_connection(parts.hostname or "", parts.port or PORT)
    except (OSError, TimeoutError, UnicodeError) as error:  # a name that is none in DNS: UnicodeError
        advice = "Start the client and its listener, or correct [opcua] reverse_connect; the gateway tries again."
        yield warning(
            subject,
            Text.of("no client listens at {url}: {reason}", url=url, reason=str(error) or Text.of("too slow")),
            advice,
        )
    else:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        yield ok(subject, Text.of("listens at {url}", url=url))


async def examine_announcement(
    settings: Settings, directory: Path = advertise.DIRECTORY
) -> AsyncIterator[HealthFinding]:
    """Examine the service file of avahi-daemon."""
    yield await asyncio.to_thread(_announcement, settings, directory)


def _announcement(settings: Settings, directory: Path) -> HealthFinding:
    subject = "OPC UA announcement"
    found = advertise.read_service_file(directory)
    if not directory.is_dir():
        return warning(
            subject,
            Text.of("there is no directory {directory}", directory=directory),
            "Install avahi-daemon, then restart the gateway.",
        )
    if found != advertise.service_file(settings):
        state = Text.of("no service file") if found is None else Text.of("an outdated service file")
        advice = "Restart the gateway, or call: sudo edge opcua advertise"
        return warning(subject, Text.of("{state} in {directory}", state=state, directory=directory), advice)
    return ok(subject, Text.of("by mDNS, from {directory}", directory=directory))
