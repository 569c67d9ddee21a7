"""`edge opcua advertise`: announces the OPC UA server in its network."""

from pathlib import Path

import click

from edge.app.features import gateway_settings
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import settings_option
from edge.features.opcua_extras.mdns_file import DIRECTORY, update_service_file
from edge.foundation.errors import Refused


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
        problem = f"{error.filename or DIRECTORY}: {error.strerror}"
        raise Refused("file", problem, "Call it as root (sudo).") from error
    print_text(change.value)
