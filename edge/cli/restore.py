"""`edge restore`: a gateway as a backup has saved it."""

import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE


@click.command(epilog="Example: edge restore gateway.tar.gz")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Also over jobs that run, and beside a gateway that works on the store.")
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    help="Where the settings file goes, conf.d beside it. [default: /etc/microdcs-edge/edge.toml]",
)
def restore(file: Path, settings_file: Path | None, *, force: bool) -> None:
    """Bring back what a backup has saved.

    FILE is what `edge backup` wrote. Stop the gateway first. The store that the settings in FILE name is replaced as a
    whole; what the replaced files held stays beside them, in files that end in .before-restore. Nothing is written
    unless all of FILE can be used.
    """
    import asyncio

    from edge.cli.terminal.store_access import log_to_stderr
    from edge.instant import now_ms
    from edge.maintenance.restore import restore as retry_letter

    log_to_stderr()
    asyncio.run(retry_letter(file, settings_file, os.environ, now_ms(), print_text, force=force))
