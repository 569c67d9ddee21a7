"""Renews the certificate of the OPC UA server by itself while no client can trust it; later it reports what is wrong.

A client trusts a self-signed certificate itself, not the gateway: a new one ends this trust.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from cryptography import x509

from edge.config import OpcuaSettings
from edge.foundation.errors import SettingsError
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.ticks import next_tick
from edge.opcua.application_certificate import application_uris, host_names
from edge.opcua.server_core import ServerCore
from edge.uaserver import certificates
from edge.uaserver.application_trust import issuers_directory, rejected_directory
from edge.uaserver.certificates import OwnCertificate
from edge.uaserver.security import serve_certificate

logger = structlog.get_logger(__name__)

EVERY_S: Final = 10.0
"""Addresses come and go while the gateway runs: DHCP, a cable, another network."""
_DAY: Final = timedelta(days=1)
_ADVICE: Final = "edge opcua renew, then restart and trust the certificate in its clients"


def _utc_now() -> datetime:
    return datetime.now(UTC)


class CertificateRenewal:
    """Loads the certificate of a server, and renews it while no client can trust it.

    `is_shared` says that the station page uses it, too: browsers leave no trace of what they trust.
    """

    def __init__(
        self,
        settings: OpcuaSettings,
        application_uri: str,
        now: Callable[[], datetime] = _utc_now,
        *,
        is_shared: bool = False,
    ) -> None:
        self._settings = settings
        self._uri = application_uri
        self._now = now
        self._is_shared = is_shared
        self._listening = urlsplit(settings.endpoint).hostname or ""
        self._faults = LogThrottle(logger, interval=_DAY.total_seconds())

    def load(self) -> OwnCertificate:
        """Return the stored certificate, or a new one. Raises SettingsError, Unavailable as `load_or_make`."""
        names = certificates.server_hosts(self._settings, self._listening)
        own = certificates.load_or_make(Path(self._settings.pki), self._uri, names)
        return self.renewed(own) or own

    def faults(self, certificate: x509.Certificate) -> list[str]:
        """Return why clients reject a certificate now or soon."""
        reachable = certificates.reachable_hosts(self._settings, self._listening)
        return list(map(str, certificates.warnings(certificate, self._uri, self._now(), reachable)))

    def renewed(self, own: OwnCertificate) -> OwnCertificate | None:
        """Replace the certificate where that is due and no client can trust it; keep the key and the former names.

        Return the new certificate; None where there is none.
        """
        faults = self.faults(own.certificate)
        if not faults or not certificates.is_self_made(own.certificate) or self._may_be_trusted():
            return None
        directory = Path(self._settings.pki)
        try:
            own_certificate = certificates.load(directory)
            if own_certificate is None or own_certificate.certificate != own.certificate:
                return None  # An administrator has replaced it, and the next start will serve that one.
            former = host_names(own.certificate) if self._uri in application_uris(own.certificate) else ()
            names = dict.fromkeys([*certificates.server_hosts(self._settings, self._listening), *former])
            renewed = certificates.renew(directory, self._uri, names, key=own.key)
        except (OSError, SettingsError) as error:
            advice = f"The gateway has to own {directory}: edge doctor"
            self._faults.warning("OPC UA certificate not renewed", str(error), reason=str(error), advice=advice)
            return None
        logger.info("OPC UA certificate renewed", reason="; ".join(faults), hosts=list(names))
        return renewed

    async def watch(self, core: ServerCore) -> None:
        """Serve a renewed certificate; log what is wrong at each change and once per day. Run until cancelled."""
        reported: list[str] = []
        reported_at = self._now()
        while True:
            own = OwnCertificate(core.certificate, core.private_key)
            faults = self.faults(own.certificate)
            if faults and (renewed := await asyncio.to_thread(self.renewed, own)) is not None:
                serve_certificate(core, renewed)
                faults = self.faults(renewed.certificate)
            if faults and (faults != reported or self._now() - reported_at >= _DAY):
                reported_at = self._now()
                for fault in faults:
                    logger.warning("OPC UA certificate needs renewal", reason=fault, advice=_ADVICE)
            reported = faults
            await next_tick(EVERY_S)

    def _may_be_trusted(self) -> bool:
        """Return whether a client may trust the certificate already.

        An OPC UA client that accepted it has sent its own one, which is trusted or rejected by now. One to which the
        server connects, a discovery server and a certificate manager get it beforehand.
        """
        settings = self._settings
        if self._is_shared or settings.security_admins or settings.reverse_connect or settings.discovery_server:
            return True
        trusted, rejected = Path(settings.trusted), rejected_directory(Path(settings.pki))
        return any(_has_files(directory) for directory in (trusted, issuers_directory(trusted), rejected))


def _has_files(directory: Path) -> bool:
    try:
        return any(file.is_file() for file in directory.iterdir())
    except FileNotFoundError:
        return False
    except OSError:  # it cannot be read, so nothing is known
        return True
