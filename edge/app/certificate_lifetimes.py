"""Looks at the certificates of a gateway: how long each is valid, and whether its own one fits its addresses."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from edge.app.service_user import USER, may_write
from edge.config import Settings
from edge.foundation.text import Text, join_texts
from edge.model.finding import HealthFinding, failing, ok, warning
from edge.opcua.application_certificate import read_certificate
from edge.uaserver import certificates
from edge.uaserver.namespaces import application_uri


def certificates_of(settings: Settings, may_write: Callable[[Path], bool] = may_write) -> Iterator[HealthFinding]:
    """Yield a finding for every certificate of the gateway. Raises SettingsError when one cannot be read."""
    now = datetime.now(UTC)
    if settings.opcua.endpoint or settings.certificate_hosts:
        yield _own(settings, now, may_write)
    for name, path in settings.tls_files.items():
        if not name.endswith(".key_file"):
            yield _lifetime(name, path, now)


def _own(settings: Settings, now: datetime, may_write: Callable[[Path], bool]) -> HealthFinding:
    subject, directory = "OPC UA certificate", Path(settings.opcua.pki)
    own = certificates.load_certificate(directory)
    if own is None:
        return warning(subject, "none yet", "Start the gateway: it generates one.")
    reachable = certificates.reachable_hosts(settings.opcua, *certificates.listening_hosts(settings))
    reasons = tuple(certificates.warnings(own, application_uri(settings.gateway.name), now, reachable))
    faults = join_texts("; ", reasons) if reasons else None
    until = Text.of(
        "{thumbprint}… is valid until {last_day}", thumbprint=certificates.thumbprint(own)[:8], last_day=last_day(own)
    )
    advice = "Renew it with `edge opcua renew`, restart the gateway, and trust the certificate in its clients."
    if own.not_valid_after_utc < now:
        return failing(subject, faults or until, advice)
    # Another user than root and the owner cannot test it.
    if os.geteuid() in {0, directory.stat().st_uid} and not may_write(directory):
        found = Text.of(
            "{faults}; the gateway may not write {directory}: no certificate is renewed",
            faults=faults or until,
            directory=directory,
        )
        return warning(
            subject,
            found,
            Text.of("Let the service own it: chown -R {user} {directory}", user=USER, directory=directory),
        )
    return warning(subject, faults, advice) if faults else ok(subject, until)


def _lifetime(name: str, path: Path, now: datetime) -> HealthFinding:
    subject = Text.of("certificate {name}", name=name)
    advice = Text.of("Replace {path} by a newer certificate, and restart the gateway.", path=path)
    try:
        certificate = read_certificate(path)
    except (OSError, ValueError) as error:
        return failing(subject, f"{path}: {error}", advice)
    left = certificate.not_valid_after_utc - now
    found = Text.of("{path} is valid until {last_day}", path=path, last_day=last_day(certificate))
    if left < timedelta():
        return failing(
            subject, Text.of("{path} has expired on {last_day}", path=path, last_day=last_day(certificate)), advice
        )
    if left < certificates.WARN_BEFORE:
        return warning(subject, found, advice)
    return ok(subject, found)


def last_day(certificate: x509.Certificate) -> str:
    """Return the last day of a certificate, as YYYY-MM-DD."""
    return certificate.not_valid_after_utc.date().isoformat()
