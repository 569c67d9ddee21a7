"""Announces the OPC UA server by mDNS (OPC 10000-12, annex C), with a file for avahi-daemon."""

from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import click

from edge.app.features import discovery_capabilities, gateway_settings
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import settings_option
from edge.config import Settings
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.foundation.text import Text

DIRECTORY: Final = Path("/etc/avahi/services")
"""The directory that avahi-daemon watches; without avahi-daemon it is absent."""
_FILE: Final = "microdcs-edge.service"
_MARK: Final = "Written by `edge opcua advertise`"
_PORT: Final = 4840
_LONGEST_NAME: Final = 30
"""A service name of mDNS takes 63 bytes; that of the host is part of it."""


class FileChange(Enum):
    """What happened to the service file."""

    WRITTEN = "service file written"
    UNCHANGED = "service file is up to date"
    REMOVED = "service file removed"
    ABSENT = "there is no service file"
    FOREIGN = "service file left alone: another program or a person wrote it"


def service_file(settings: Settings) -> str:
    """Return the content of the service file."""
    capabilities = ",".join(discovery_capabilities(settings))
    name = escape(settings.gateway.name.encode()[:_LONGEST_NAME].decode(errors="ignore"))
    return f"""\
<?xml version="1.0" standalone="no"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<!-- {_MARK} from [opcua] advertise; changes are lost. -->
<service-group>
  <name replace-wildcards="yes">{name} on %h</name>
  <service>
    <type>_opcua-tcp._tcp</type>
    <port>{urlsplit(settings.opcua.endpoint).port or _PORT}</port>
    <txt-record>path=/</txt-record>
    <txt-record>caps={capabilities}</txt-record>
  </service>
</service-group>
"""


def update_service_file(settings: Settings | None, directory: Path) -> FileChange:
    """Write the service file, or remove it, as the settings say; without settings it is removed.

    Raises OSError, and Refused without avahi-daemon.
    """
    if settings is None or not settings.opcua.advertise:
        return _remove(directory)
    path, content = directory / _FILE, service_file(settings)
    if not directory.is_dir():
        raise Refused(
            "mdns", Text.of("there is no directory {directory}", directory=directory), "Install avahi-daemon."
        )
    if read_service_file(directory) == content:
        return FileChange.UNCHANGED
    write_atomically(path, content.encode(), 0o644)
    return FileChange.WRITTEN


def read_service_file(directory: Path) -> str | None:
    """Return the content of the service file; None when it is absent."""
    try:
        return (directory / _FILE).read_text(errors="replace")
    except FileNotFoundError:
        return None


def _remove(directory: Path) -> FileChange:
    """Remove the service file if this program wrote it."""
    found = read_service_file(directory)
    if found is None:
        return FileChange.ABSENT
    if _MARK not in found:
        return FileChange.FOREIGN
    (directory / _FILE).unlink()
    return FileChange.REMOVED


@click.command(epilog="Example: edge opcua advertise")
@click.option("--remove", is_flag=True, help="Remove the service file, whatever the settings say.")
@settings_option
def advertise(settings_file: Path | None, *, remove: bool) -> None:
    """Announce the server by mDNS (_opcua-tcp._tcp), as `[opcua] advertise` says.

    It writes the service file of avahi-daemon, or removes its own one; the unit microdcs-edge-mdns calls it.
    """
    settings = None if remove else gateway_settings(settings_file)
    try:
        change = update_service_file(settings, DIRECTORY)
    except OSError as error:
        problem = Text.of("{filename}: {reason}", filename=error.filename or DIRECTORY, reason=error.strerror)
        raise Refused("file", problem, "Call it as root (sudo).") from error
    print_text(change.value)
