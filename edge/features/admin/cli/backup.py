"""`edge backup`: a gateway in one file."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, log_to_stderr, settings_option
from edge.features.admin.backup import Part, back_up
from edge.foundation.instant import now_ms


@click.command(epilog="Example: edge backup gateway.tar.gz")
@click.argument("file", type=FILE)
@click.option("--with-key", is_flag=True, help="Also save private keys and the files of passwords/.")
@click.option("--without-store", is_flag=True, help="Leave out jobs, Work Masters and the rest of the store.")
@settings_option
def backup(file: Path, settings_file: Path | None, *, with_key: bool, without_store: bool) -> None:
    """Save settings, certificates, users and jobs of a gateway in one file.

    FILE is a tar.gz that only its owner can read. It holds the settings with the passwords that stand in them, the
    users with their password hashes and second factors, certificates, public keys of administrators, and the whole
    store. Private keys and the files of passwords/ are in it only with --with-key. Station files, node kinds, traces,
    history and files of flows are never in it: copy their folders.

    The gateway may run meanwhile; the store is read at one instant. On an installed gateway call it as root.
    """
    log_to_stderr()
    wanted = {Part.KEYS: with_key, Part.STORE: not without_store}
    parts = {part for part, is_wanted in wanted.items() if is_wanted}
    asyncio.run(back_up(file, settings_file, os.environ, parts, now_ms(), print_text))
