"""`edge support-bundle`: what support asks for, in one file."""

import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, settings_option


@click.command("support-bundle", epilog="Example: edge support-bundle support.tar.gz")
@click.argument("file", type=FILE)
@click.option("--since", default="-2d", show_default=True, help="How far back logs go, as journalctl takes it.")
@click.option("--with-jobs", is_flag=True, help="Also jobs, Work Masters and runs with all their data.")
@settings_option
def support_bundle(file: Path, since: str, settings_file: Path | None, *, with_jobs: bool) -> None:
    """Gather what support needs in one file, without secrets.

    FILE is a tar.gz with logs, settings, versions, what `edge doctor` finds, and how much the store holds. Keys are
    never in it; passwords are hidden wherever they turn up. Logs name jobs, users and addresses: look through it first.
    """
    import asyncio

    from edge.cli.terminal.store_access import log_to_stderr
    from edge.instant import now_ms
    from edge.maintenance.support import gather

    log_to_stderr("critical")
    asyncio.run(gather(file, settings_file, os.environ, since, now_ms(), print_text, with_jobs=with_jobs))
