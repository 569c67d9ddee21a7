"""`edge opcua advertise`: writes the file with which avahi-daemon announces the OPC UA server."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import settings_option

if TYPE_CHECKING:
    from edge.config import Settings


@click.command(epilog="Example: sudo edge opcua advertise")
@click.option("--directory", type=click.Path(path_type=Path), help="Where to. [default: /etc/avahi/services]")
@click.option("--remove", is_flag=True, help="Remove the file, whatever the settings say.")
@settings_option
def advertise(settings_file: Path | None, directory: Path | None, *, remove: bool) -> None:
    """Announce the server by mDNS (_opcua-tcp._tcp), as `[opcua] advertise` says.

    Writes the service file of avahi-daemon, or removes it when the setting is off. The unit microdcs-edge-mdns calls it
    at each start and stop of the gateway. A file that somebody else wrote is replaced, but never removed.
    """
    from edge.errors import Refused
    from edge.maintenance.mdns_file import DIRECTORY, remove_service_file, write_service_file

    place = directory or DIRECTORY
    try:
        change = remove_service_file(place) if remove else write_service_file(_settings(settings_file), place)
    except OSError as error:
        raise Refused("mdns", f"{place}: {error.strerror}", "Call it as root (sudo).") from None
    print_text(f"service file in {place}: {change.value}")


def _settings(settings_file: Path | None) -> "Settings":
    from edge.config import load_settings
    from edge.southbound.kinds import EQUIPMENT_SETTINGS

    return load_settings(settings_file, os.environ, EQUIPMENT_SETTINGS)
