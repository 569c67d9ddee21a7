"""Examines the OPC UA server: port, certificate, trust list, users."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from edge.config import OpcuaSettings, Settings
from edge.maintenance import mdns_file
from edge.maintenance.finding import HealthFinding, failing, ok, warning
from edge.maintenance.installation import gateway_advice
from edge.maintenance.tls_files import tls_files
from edge.opcua.x509 import certificate_files, read_certificate
from edge.ops.users import read_users
from edge.uaserver import certificates, trust
from edge.uaserver.namespaces import application_uri

_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - these are replaced
_PORT = 4840
_OPCUA = frozenset({b"ACKF", b"ERRF"})
"""Answers of an OPC UA server to a Hello message."""
_HELLO_HEAD = struct.Struct("<4sI5I")
_CONNECT_WITHIN_S = 3.0
_OTHERS = 0o007


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
        yield warning("OPC UA port", f"connection refused at {endpoint}: the gateway does not run", gateway_advice())
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
        advice = f"Switch it on and check its connection; {waiting}."
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


async def examine_certificates(settings: Settings) -> AsyncIterator[HealthFinding]:
    """Examine every certificate of the gateway and its validity. Raises SettingsError when one cannot be read."""
    for finding in await asyncio.to_thread(list, certificates_of(settings)):
        yield finding


def certificates_of(settings: Settings) -> Iterator[HealthFinding]:
    """Yield a finding for every certificate of the gateway. Raises SettingsError when one cannot be read."""
    now = datetime.now(UTC)
    if settings.opcua.endpoint:
        yield _own(settings, now)
    for name, path in tls_files(settings).items():
        if not name.endswith(".key_file"):
            yield _lifetime(name, path, now)


def _own(settings: Settings, now: datetime) -> HealthFinding:
    subject = "OPC UA certificate"
    own = certificates.load_certificate(Path(settings.opcua.pki))
    if own is None:
        return warning(subject, "none yet", "Start the gateway: it generates one.")
    faults = "; ".join(certificates.warnings(own, application_uri(settings.gateway.name), now))
    until = f"{certificates.thumbprint(own)[:8]}… is valid until {_day(own)}"
    advice = "Renew it with `edge opcua renew`, restart the gateway, and trust the certificate in its clients."
    if own.not_valid_after_utc < now:
        return failing(subject, faults, advice)
    return warning(subject, faults, advice) if faults else ok(subject, until)


def _lifetime(subject: str, path: Path, now: datetime) -> HealthFinding:
    advice = f"Replace {path} by a newer certificate, and restart the gateway."
    try:
        certificate = read_certificate(path)
    except (OSError, ValueError) as error:
        return failing(f"certificate {subject}", f"{path}: {error}", advice)
    left = certificate.not_valid_after_utc - now
    found = f"{path} is valid until {_day(certificate)}"
    if left < timedelta():
        return failing(f"certificate {subject}", f"{path} has expired on {_day(certificate)}", advice)
    if left < certificates.WARN_BEFORE:
        return warning(f"certificate {subject}", found, advice)
    return ok(f"certificate {subject}", found)


async def examine_trust(settings: OpcuaSettings) -> AsyncIterator[HealthFinding]:
    """Examine the trust list."""
    yield await asyncio.to_thread(_trust, settings, datetime.now(UTC))


def _trust(settings: OpcuaSettings, now: datetime) -> HealthFinding:
    subject = "OPC UA trust list"
    trusted = [entry.certificate for entry in certificate_files(Path(settings.trusted))]
    waiting = len(list(certificate_files(trust.rejected_directory(Path(settings.pki)))))
    rejected = f"; {waiting} rejected" if waiting else ""
    look = "List it with `edge opcua list`, and trust a client with `edge opcua trust`."
    if not trusted:
        found = f"no application is trusted{rejected}"
        is_open = settings.security == "none"
        return ok(subject, f"{found}; security is none") if is_open else warning(subject, found, look)
    ending = [each for each in trusted if each.not_valid_after_utc - now < certificates.WARN_BEFORE]
    found = f"{len(trusted)} trusted{rejected}"
    if ending:
        until = ", ".join(f"{each.subject.rfc4514_string()} until {_day(each)}" for each in ending)
        return warning(subject, f"{found}; soon or already expired: {until}", look)
    return ok(subject, found)


async def examine_users(file: Path, anonymous: str) -> AsyncIterator[HealthFinding]:
    """Examine the user file; clients without a user name have the role `anonymous`."""
    yield await asyncio.to_thread(_users, file, anonymous)


def _users(file: Path, anonymous: str) -> HealthFinding:
    subject = "OPC UA users"
    users = read_users(file)
    if not file.exists():
        return ok(subject, f"none; the role of a client without a user name is {anonymous}")
    lines = [line for line in file.read_bytes().splitlines() if line.strip() and not line.startswith(b"#")]
    if file.stat().st_mode & _OTHERS:
        return warning(subject, f"{file} is readable by every user of this machine", f"Restrict it: chmod 640 {file}")
    if len(lines) > len(users):
        advice = "Remove or correct them; a line is name:role:hash. Set a user again with `edge users passwd`."
        return warning(subject, f"{len(lines) - len(users)} lines of {file} are invalid", advice)
    return ok(subject, ", ".join(f"{user.name} ({user.role.name.lower()})" for user in users.values()) or "none")


def _day(certificate: x509.Certificate) -> str:
    return certificate.not_valid_after_utc.date().isoformat()
