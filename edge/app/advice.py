"""Advice for people: on a service that is missing, on equipment without a connection, on a server without an answer."""

import asyncio
import contextlib
import shutil
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text, join_texts
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import ConnectionFault
from edge.model.finding import HealthFinding, failing, ok

_SWITCH_ON: Final = Text.of("Switch it on and check its connection.")
_ADVICE: Final[Mapping[str, Text]] = {
    ConnectionFault.REFUSED: Text.of(
        "Switch it on, and compare address and port with the settings: no program listens there."
    ),
    ConnectionFault.NO_HOST: Text.of("Correct the name of its host in the settings, or the DNS of this computer."),
    ConnectionFault.UNREACHABLE: Text.of("Check cable, network and route to it."),
    ConnectionFault.SILENT: Text.of(
        "Compare its address with the settings, and check that no firewall drops its packets."
    ),
    ConnectionFault.CLOSED: Text.of("Check at the equipment why it closes the connection."),
    ConnectionFault.DECLINED: Text.of("Close the other client, allow one more at the equipment, or correct the login."),
    ConnectionFault.CERTIFICATE: Text.of("Exchange the certificates of both: docs/how-to/opcua-equipment.md."),
    ConnectionFault.PROTOCOL: Text.of(
        "Compare kind, address and port with the settings: another protocol answers there."
    ),
    ConnectionFault.WRONG_DEVICE: Text.of("Compare its address with the settings: another device answers there."),
    ConnectionFault.BROKER: Text.of("Check the connection to its broker."),
    ConnectionFault.OFFLINE: Text.of("Switch the equipment on: its broker is connected."),
    ConnectionFault.SETTINGS: Text.of("Correct its settings."),
}


def connection_advice(fault: str) -> Text:
    """Return what to do about a kind of reason, by its value."""
    return _ADVICE.get(fault, _SWITCH_ON)


UNIT = "microdcs-edge.service"
UNIT_DIRECTORIES = tuple(
    Path(text) for text in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
)
STORE_PROGRAMS = ("redis-check-rdb", "redis-server", "valkey-server")
"""Each of them is a server of the store: redis-check-rdb is redis-server under another name."""
_STORE_UNIT = "redis-server@microdcs.service"
_STORE_URL = "unix:///run/redis-microdcs/redis.sock"
_THIS_MACHINE = {"", "localhost", "127.0.0.1", "::1"}
# Debian installs servers in directories that are not in the PATH of a user.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FindProgram = Callable[[str], str | None]


def find_program(name: str) -> str | None:
    """Return the path of a program, also of a server."""
    return shutil.which(name, path=_PATH)


def is_this_machine(url: str) -> bool:
    """Return whether a server is on this machine."""
    return (urlsplit(url).hostname or "") in _THIS_MACHINE


def starts_with_gateway(
    url: str, directories: Sequence[Path] = UNIT_DIRECTORIES, find: FindProgram = find_program
) -> bool:
    """Return whether the store is that of the package, which systemd starts with the gateway, and not running yet."""
    is_ours = url == _STORE_URL and any((directory / _STORE_UNIT).exists() for directory in directories)
    return is_ours and not Path(urlsplit(url).path).exists() and any(find(text) for text in STORE_PROGRAMS)


def install_advice(url: str, package: str, programs: Sequence[str], find: FindProgram = find_program) -> str | Text:
    """Return the advice to install a package; empty when one of the programs is installed or another machine serves."""
    if not is_this_machine(url) or any(find(program) for program in programs):
        return ""
    return Text.of("Install it: apt install {package}. Or name another server in the settings.", package=package)


def store_advice(
    url: str, directories: Sequence[Path] = UNIT_DIRECTORIES, find: FindProgram = find_program
) -> str | Text:
    """Return the advice to install or start the store; empty when it is not that of the package."""
    if starts_with_gateway(url, directories, find):
        return Text.of("{advice}. The store starts with it.", advice=gateway_advice(directories))
    return install_advice(url, "redis-tools", STORE_PROGRAMS, find)


def gateway_advice(directories: Sequence[Path] = UNIT_DIRECTORIES) -> Text:
    """Return the command that starts the gateway on this machine."""
    if any((directory / UNIT).exists() for directory in directories):
        return Text.of("Start the gateway: systemctl start microdcs-edge")
    return Text.of("Install the gateway as a service: apt install microdcs-edge. Or start it from a checkout: edge run")


async def advise(examination: AsyncIterator[HealthFinding], advice: str | Text) -> AsyncIterator[HealthFinding]:
    """Yield the findings of an examination; raise its Unavailable with this advice, if any."""
    try:
        async for finding in examination:
            yield finding
    except Unavailable as error:
        raise Unavailable(error.text, advice or error.advice_text) from error


PORT = 4840
ANSWERS = frozenset({b"ACKF", b"ERRF"})
"""Answers of an OPC UA server to a Hello message."""
CONNECT_WITHIN_S = 3.0
_HELLO_HEAD = struct.Struct("<4sI5I")


async def examine_server(subject: str | Text, url: str, waiting: Text) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to another OPC UA server; `waiting` says what waits for it, as a sentence."""
    parts = urlsplit(url)
    try:
        answer = await send_hello(parts.hostname or "", parts.port or PORT, url)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = join_texts(" ", (connection_advice(fault_of(error)), waiting))
        yield failing(
            subject, Text.of("no answer at {url}: {reason}", url=url, reason=str(error) or Text.of("too slow")), advice
        )
    else:
        if answer in ANSWERS:
            yield ok(subject, Text.of("answers at {url}", url=url))
        else:
            yield failing(subject, Text.of("the program at {url} is not an OPC UA server", url=url), "Correct its url.")


async def send_hello(host: str, port: int, endpoint: str) -> bytes:
    """Send a Hello message and return the message type of the answer."""
    url = endpoint.encode()
    hello = _HELLO_HEAD.pack(b"HELF", _HELLO_HEAD.size + 4 + len(url), 0, 65_536, 65_536, 0, 0)
    async with asyncio.timeout(CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(hello + struct.pack("<I", len(url)) + url)
            return await reader.readexactly(4)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
