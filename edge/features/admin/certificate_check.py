"""Examines the certificates of the gateway, the trust list and the users of its OPC UA server."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from edge.access.users import read_users
from edge.app.service_user import USER, may_write
from edge.app.tls_files import tls_files
from edge.config import OpcuaSettings, Settings
from edge.model.finding import HealthFinding, failing, ok, warning
from edge.opcua.application_certificate import certificate_files, read_certificate
from edge.uaserver import application_trust as trust
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri

_OTHERS = 0o007


async def examine_certificates(
    settings: Settings, may_write: Callable[[Path], bool] = may_write
) -> AsyncIterator[HealthFinding]:
    """Examine every certificate of the gateway and its validity. Raises SettingsError when one cannot be read."""
    for finding in await asyncio.to_thread(list, certificates_of(settings, may_write)):
        yield finding


def certificates_of(settings: Settings, may_write: Callable[[Path], bool] = may_write) -> Iterator[HealthFinding]:
    """Yield a finding for every certificate of the gateway. Raises SettingsError when one cannot be read."""
    now = datetime.now(UTC)
    if settings.opcua.endpoint or settings.web.shares_certificate:
        yield _own(settings, now, may_write)
    for name, path in tls_files(settings).items():
        if not name.endswith(".key_file"):
            yield _lifetime(name, path, now)


def _own(settings: Settings, now: datetime, may_write: Callable[[Path], bool]) -> HealthFinding:
    subject, directory = "OPC UA certificate", Path(settings.opcua.pki)
    own = certificates.load_certificate(directory)
    if own is None:
        return warning(subject, "none yet", "Start the gateway: it generates one.")
    reachable = certificates.reachable_hosts(settings.opcua, *certificates.listening_hosts(settings))
    faults = "; ".join(certificates.warnings(own, application_uri(settings.gateway.name), now, reachable))
    until = f"{certificates.thumbprint(own)[:8]}… is valid until {_day(own)}"
    advice = "Renew it with `edge opcua renew`, restart the gateway, and trust the certificate in its clients."
    if own.not_valid_after_utc < now:
        return failing(subject, faults, advice)
    # Another user than root and the owner cannot test it.
    if os.geteuid() in {0, directory.stat().st_uid} and not may_write(directory):
        found = f"{faults or until}; the gateway may not write {directory}: no certificate is renewed"
        return warning(subject, found, f"Let the service own it: chown -R {USER} {directory}")
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
