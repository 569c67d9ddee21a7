"""Locates the TLS files of the sessions of a gateway."""

from collections.abc import Iterable
from pathlib import Path

from edge.config import Settings
from edge.model.finding import HealthFinding


def tls_files(settings: Settings) -> dict[str, Path]:
    """Return the TLS files of the settings by section and key, as in `mqtt.ca_file`."""
    sections = {"redis": settings.redis, "mqtt": settings.mqtt, "rpc": settings.rpc, **settings.sections}
    sections |= {f"southbound.{name}": section for name, section in settings.southbound.items()}
    return {
        f"{name}.{key}": Path(path)
        for name, section in sections.items()
        for key in ("ca_file", "cert_file", "key_file")
        if (path := getattr(section, key, ""))
    }


def certificate_findings(settings: Settings) -> Iterable[HealthFinding]:
    """Return a finding for every certificate of the gateway. Raises SettingsError when one cannot be read."""
    if not settings.opcua.endpoint and not settings.certificate_hosts and not tls_files(settings):
        return ()
    # Imported only when there are certificates.
    from edge.app.certificate_lifetimes import certificates_of  # noqa: PLC0415

    return certificates_of(settings)
