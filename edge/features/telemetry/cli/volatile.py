"""`edge hw volatile`: reports where samples are kept."""

from pathlib import Path

import click

from edge.app.features import gateway_settings
from edge.cli.terminal.store_access import settings_option
from edge.features.telemetry.sample_store import is_volatile
from edge.features.telemetry.settings import TelemetrySettings
from edge.foundation.computer import Computer


@click.command(epilog="Example: edge hw volatile && echo in memory")
@settings_option
def volatile(settings_file: Path | None) -> None:
    """Report whether samples are kept in the second Redis, which writes no files.

    The exit status is 0 when they are, else 1: the unit of that Redis starts only then.
    """
    settings = gateway_settings(settings_file)
    found = is_volatile(settings.section(TelemetrySettings), settings.redis, Computer())
    click.echo("samples are kept in memory" if found else "samples are kept in the store")
    raise SystemExit(0 if found else 1)
