"""Examines the connections of the OPC UA server: its port, other servers, listeners, its announcement."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

from edge.config import OpcuaSettings, Settings
from edge.features.admin.connection_advice import connection_advice
from edge.features.admin.installation import gateway_advice
from edge.features.opcua_extras import mdns_file
from edge.links.connection_fault import fault_of
from edge.model.finding import HealthFinding, failing, ok, warning

_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - these are replaced
_PORT = 4840
_OPCUA = frozenset({b"ACKF", b"ERRF"})
"""Answers of an OPC UA server to a Hello message."""
_HELLO_HEAD = struct.Struct("<4sI5I")
_CONNECT_WITHIN_S = 3.0


async def examine_port(settings: OpcuaSettings) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to the endpoint of the gateway (OPC 10000-6, 7.1.2)."""
    endpoint = settings.endpoint
    if not endpoint:
        yield ok("OPC UA port", "switched off")
        return
    parts = urlsplit(endpoint)
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host in _ANYWHERE else host
    if not await _is_local(host):
        advice = "Check the network of this machine (`ip address`), or set [opcua] endpoint. The gateway waits for it."
        yield failing("OPC UA port", f"no interface of this machine has the address of {endpoint}", advice)
        return
    try:
        answer = await _send_hello(host, parts.port or _PORT, endpoint)
    except ConnectionRefusedError:
        advice = f"A gateway that runs opens it as soon as it has its store. If none runs: {gateway_advice()}"
        yield warning("OPC UA port", f"connection refused at {endpoint}: no gateway serves there", advice)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = (
            f"Check which program listens (`ss -ltnp sport = :{parts.port or _PORT}`). "
            "If it is the gateway, check its log: journalctl -u microdcs-edge"
        )
        yield failing("OPC UA port", f"no answer at {endpoint}: {str(error) or 'too slow'}", advice)
    else:
        if answer in _OPCUA:
            yield ok("OPC UA port", f"answers at {endpoint}")
        else:
            advice = f"Stop the other program (`ss -ltnp sport = :{parts.port or _PORT}`), or set [opcua] endpoint."
            yield failing("OPC UA port", f"the program at {endpoint} is no OPC UA server", advice)


async def examine_server(subject: str, url: str, waiting: str) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to another OPC UA server; `waiting` is what waits for it."""
    parts = urlsplit(url)
    try:
        answer = await _send_hello(parts.hostname or "", parts.port or _PORT, url)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = f"{connection_advice(fault_of(error))} {waiting[:1].upper()}{waiting[1:]}."
        yield failing(subject, f"no answer at {url}: {str(error) or 'too slow'}", advice)
    else:
        if answer in _OPCUA:
            yield ok(subject, f"answers at {url}")
        else:
            yield failing(subject, f"the program at {url} is no OPC UA server", "Correct its url.")


async def examine_listener(subject: str, url: str) -> AsyncIterator[HealthFinding]:
    """Connect to a client that listens for the server (reverse connect)."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(_CONNECT_WITHIN_S):
            _, writer = await asyncio.open_connection(parts.hostname or "", parts.port or _PORT)
    except (OSError, TimeoutError, UnicodeError) as error:  # a name that is none in DNS: UnicodeError
        advice = "Start the client and its listener, or correct [opcua] reverse_connect; the gateway tries again."
        yield warning(subject, f"no client listens at {url}: {str(error) or 'too slow'}", advice)
    else:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        yield ok(subject, f"listens at {url}")


async def examine_announcement(
    settings: Settings, directory: Path = mdns_file.DIRECTORY
) -> AsyncIterator[HealthFinding]:
    """Examine the service file of avahi-daemon."""
    yield await asyncio.to_thread(_announcement, settings, directory)


def _announcement(settings: Settings, directory: Path) -> HealthFinding:
    subject = "OPC UA announcement"
    found = mdns_file.read_service_file(directory)
    if not directory.is_dir():
        return warning(subject, f"there is no directory {directory}", "Install avahi-daemon, then restart the gateway.")
    if found != mdns_file.service_file(settings):
        state = "no service file" if found is None else "an outdated service file"
        advice = "Restart the gateway, or call: sudo edge opcua advertise"
        return warning(subject, f"{state} in {directory}", advice)
    return ok(subject, f"by mDNS, from {directory}")


async def _is_local(host: str) -> bool:
    """Return whether a server on this machine can listen at an address, which may come later (DHCP)."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, 0, start_serving=False)
    except OSError:
        return False
    server.close()
    return True


async def _send_hello(host: str, port: int, endpoint: str) -> bytes:
    """Send a Hello message and return the message type of the answer."""
    url = endpoint.encode()
    hello = _HELLO_HEAD.pack(b"HELF", _HELLO_HEAD.size + 4 + len(url), 0, 65_536, 65_536, 0, 0)
    async with asyncio.timeout(_CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(hello + struct.pack("<I", len(url)) + url)
            return await reader.readexactly(4)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
