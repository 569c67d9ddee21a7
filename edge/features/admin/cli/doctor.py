"""`edge doctor`: examines a gateway and prints findings with advice."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_findings
from edge.cli.terminal.store_access import json_option, log_to_stderr, settings_option
from edge.features.admin.doctor import examine


@click.command(epilog="Example: edge doctor")
@settings_option
@json_option
def doctor(settings_file: Path | None, *, as_json: bool) -> None:
    """Examine a gateway and its dependencies, with advice for each fault.

    It looks at settings, store, brokers, equipment, OPC UA, certificates, clock, disk, memory and versions, in ten
    seconds at most, and changes nothing. Call it as root on a gateway that is installed. The exit status is 0 when
    all is well, 1 when there is a warning, 2 when something fails.
    """
    log_to_stderr("critical")
    raise SystemExit(print_findings(asyncio.run(examine(settings_file, os.environ)), as_json=as_json))
