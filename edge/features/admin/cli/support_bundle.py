"""`edge support-bundle`: collects what support needs in one file."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, log_to_stderr, settings_option
from edge.features.admin.support import gather
from edge.foundation.instant import now_ms


@click.command("support-bundle", epilog="Example: edge support-bundle support.tar.gz")
@click.argument("file", type=FILE)
@click.option(
    "--since", default="-2d", show_default=True, help="Start of the logs, in the format of journalctl --since."
)
@click.option("--with-jobs", is_flag=True, help="Include jobs, Work Masters and runs with their data.")
@settings_option
def support_bundle(file: Path, since: str, settings_file: Path | None, *, with_jobs: bool) -> None:
    """Collect what support needs in one file, without secrets.

    FILE is a tar.gz with logs, settings, versions, the findings of `edge doctor`, and the sizes of the store. It never
    contains keys; passwords are hidden everywhere. Logs name jobs, users and addresses: review the file first.
    """
    log_to_stderr("critical")
    asyncio.run(gather(file, settings_file, os.environ, since, now_ms(), print_text, with_jobs=with_jobs))
