"""Locates the TLS files of the sessions of a gateway."""

from pathlib import Path

from edge.config import Settings


def tls_files(settings: Settings) -> dict[str, Path]:
    """Return the TLS files of the settings by section and key, as in `mqtt.ca_file`."""
    sections = {"mqtt": settings.mqtt, "rpc": settings.rpc, "web": settings.web}
    sections |= {f"southbound.{name}": section for name, section in settings.southbound.items()}
    return {
        f"{name}.{key}": Path(path)
        for name, section in sections.items()
        for key in ("ca_file", "cert_file", "key_file")
        if (path := getattr(section, key, ""))
    }
