"""`edge backup`: a gateway in one file."""

import asyncio
import os
from pathlib import Path

import click

from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, log_to_stderr, settings_option
from edge.features.admin.backup import Part, back_up
from edge.features.admin.restore import check_backup
from edge.features.admin.restore import restore as restore_gateway
from edge.foundation.instant import now_ms
from edge.foundation.text import Text


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
    the archive of results, history, and files of flows and operations are never in it: copy their folders.

    The gateway may run meanwhile; the store is read at one instant. On an installed gateway call it as root.
    """
    log_to_stderr()
    wanted = {Part.KEYS: with_key, Part.STORE: not without_store}
    parts = {part for part, is_wanted in wanted.items() if is_wanted}
    asyncio.run(back_up(file, settings_file, os.environ, parts, now_ms(), _print))


def _print(stage: Text) -> None:
    print_text(str(stage))


@click.command(epilog="Example: edge restore gateway.tar.gz")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Also over running jobs, and while a gateway works on the store.")
@click.option("--check", "is_check", is_flag=True, help="Only check whether FILE can be restored here; write nothing.")
@click.option(
    "--settings",
    "settings_file",
    type=FILE,
    help="Target of the settings file; conf.d goes to its folder. [default: /etc/microdcs-edge/edge.toml]",
)
def restore(file: Path, settings_file: Path | None, *, force: bool, is_check: bool) -> None:
    """Restore a gateway from a backup.

    FILE was written by `edge backup`. Stop the gateway first, unless it is only checked (--check). The store named by
    the settings in FILE is replaced as a whole; replaced files are kept in the same folder with the ending
    .before-restore. Nothing is written unless all of FILE is valid. The restored store has the restore in its
    operations and its audit trail.
    """
    log_to_stderr()
    if is_check:
        asyncio.run(check_backup(file, settings_file, os.environ, _print))
        return
    asyncio.run(restore_gateway(file, settings_file, os.environ, now_ms(), _print, force=force, by=operator_name()))
