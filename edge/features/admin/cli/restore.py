"""`edge restore`: restores a gateway from a backup."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, log_to_stderr
from edge.features.admin.restore import restore as restore_gateway
from edge.foundation.instant import now_ms


@click.command(epilog="Example: edge restore gateway.tar.gz")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Also over running jobs, and while a gateway works on the store.")
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    help="Target of the settings file; conf.d goes to its folder. [default: /etc/microdcs-edge/edge.toml]",
)
def restore(file: Path, settings_file: Path | None, *, force: bool) -> None:
    """Restore a gateway from a backup.

    FILE was written by `edge backup`. Stop the gateway first. The store named by the settings in FILE is replaced as a
    whole; replaced files are kept in the same folder with the ending .before-restore. Nothing is written unless all of
    FILE is valid. The restored store has the restore in its operations and its audit trail.
    """
    log_to_stderr()
    asyncio.run(restore_gateway(file, settings_file, os.environ, now_ms(), print_text, force=force, by=operator_name()))
