"""Examines the port of the OPC UA server of the gateway."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from edge.access.users import read_users
from edge.app.advice import ANSWERS, PORT, gateway_advice, send_hello
from edge.app.certificate_lifetimes import certificates_of, last_day
from edge.app.service_user import may_write
from edge.config import OpcuaSettings, Settings
from edge.config.hosts import is_any_address
from edge.foundation.text import Text, join_texts
from edge.model.finding import HealthFinding, failing, ok, warning
from edge.model.user import Role
from edge.opcua.application_certificate import certificate_files
from edge.uaserver import application_trust as trust
from edge.uaserver import certificates

_OTHERS = 0o007


async def examine_certificates(
    settings: Settings, may_write: Callable[[Path], bool] = may_write
) -> AsyncIterator[HealthFinding]:
    """Examine every certificate of the gateway and its validity. Raises SettingsError when one cannot be read."""
    for finding in await asyncio.to_thread(list, certificates_of(settings, may_write)):
        yield finding


async def examine_trust(settings: OpcuaSettings) -> AsyncIterator[HealthFinding]:
    """Examine the trust list."""
    yield await asyncio.to_thread(_trust, settings, datetime.now(UTC))


def _trust(settings: OpcuaSettings, now: datetime) -> HealthFinding:
    subject = "OPC UA trust list"
    trusted = [entry.certificate for entry in certificate_files(Path(settings.trusted))]
    waiting = len(list(certificate_files(trust.rejected_directory(Path(settings.pki)))))
    rejected = (Text.of("{count} rejected", count=waiting),) if waiting else ()
    look = "List it with `edge opcua list`, and trust a client with `edge opcua trust`."
    if not trusted:
        found = join_texts("; ", (Text.of("no application is trusted"), *rejected))
        is_open = settings.security == "none"
        return (
            ok(subject, join_texts("; ", (found, Text.of("security is none"))))
            if is_open
            else warning(subject, found, look)
        )
    ending = [
        certificate for certificate in trusted if certificate.not_valid_after_utc - now < certificates.WARN_BEFORE
    ]
    found = join_texts("; ", (Text.of("{count} trusted", count=len(trusted)), *rejected))
    if ending:
        until = join_texts(
            ", ",
            (
                Text.of(
                    "{subject} until {day}", subject=certificate.subject.rfc4514_string(), day=last_day(certificate)
                )
                for certificate in ending
            ),
        )
        return warning(subject, Text.of("{found}; soon or already expired: {until}", found=found, until=until), look)
    return ok(subject, found)


async def examine_users(file: Path, anonymous: str) -> AsyncIterator[HealthFinding]:
    """Examine the user file; clients without a user name have the role `anonymous`."""
    yield await asyncio.to_thread(_users, file, anonymous)


def _users(file: Path, anonymous: str) -> HealthFinding:
    subject = "OPC UA users"
    users = read_users(file)
    if not file.exists():
        return ok(
            subject,
            Text.of("none; the role of a client without a user name is {anonymous}", anonymous=_role_text(anonymous)),
        )
    lines = [line for line in file.read_bytes().splitlines() if line.strip() and not line.startswith(b"#")]
    if file.stat().st_mode & _OTHERS:
        return warning(
            subject,
            Text.of("{file} is readable by every user of this machine", file=file),
            Text.of("Restrict it: chmod 640 {file}", file=file),
        )
    if len(lines) > len(users):
        advice = "Remove or correct them; a line is name:role:hash. Set a user again with `edge users passwd`."
        return warning(
            subject, Text.of("{count} lines of {file} are invalid", count=len(lines) - len(users), file=file), advice
        )
    names = (Text.of("{name} ({role})", name=user.name, role=user.role.text) for user in users.values())
    return ok(subject, join_texts(", ", names) if users else Text.of("none"))


def _role_text(anonymous: str) -> str | Text:
    """Return the role of a client without a user name for people."""
    return next((role.text for role in Role if role.name.lower() == anonymous), anonymous)


async def examine_port(settings: OpcuaSettings) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to the endpoint of the gateway (OPC 10000-6, 7.1.2)."""
    endpoint = settings.endpoint
    if not endpoint:
        yield ok("OPC UA port", "switched off")
        return
    parts = urlsplit(endpoint)
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if is_any_address(host) else host
    if not await _is_local(host):
        advice = Text.of(
            "Check the network of this machine (`ip address`), or set [opcua] endpoint. The gateway waits for it."
        )
        yield failing(
            "OPC UA port",
            Text.of("no interface of this machine has the address of {endpoint}", endpoint=endpoint),
            advice,
        )
        return
    try:
        answer = await send_hello(host, parts.port or PORT, endpoint)
    except ConnectionRefusedError:
        advice = Text.of(
            "A gateway that runs opens it as soon as it has its store. If none runs: {advice}",
            advice=gateway_advice(),
        )
        yield warning(
            "OPC UA port",
            Text.of("connection refused at {endpoint}: no gateway serves there", endpoint=endpoint),
            advice,
        )
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = Text.of(
            "Check which program listens (`ss -ltnp sport = :{port}`). "
            "If it is the gateway, check its log: journalctl -u microdcs-edge",
            port=parts.port or PORT,
        )
        yield failing(
            "OPC UA port",
            Text.of("no answer at {endpoint}: {reason}", endpoint=endpoint, reason=str(error) or Text.of("too slow")),
            advice,
        )
    else:
        if answer in ANSWERS:
            yield ok("OPC UA port", Text.of("answers at {endpoint}", endpoint=endpoint))
        else:
            advice = Text.of(
                "Stop the other program (`ss -ltnp sport = :{port}`), or set [opcua] endpoint.", port=parts.port or PORT
            )
            yield failing(
                "OPC UA port", Text.of("the program at {endpoint} is not an OPC UA server", endpoint=endpoint), advice
            )


async def _is_local(host: str) -> bool:
    """Return whether a server on this machine can listen at an address, which may come later (DHCP)."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, 0, start_serving=False)
    except OSError:
        return False
    server.close()
    return True
