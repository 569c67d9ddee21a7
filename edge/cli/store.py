"""`edge store`: shows the servers of the store, changes the primary, repairs a store that does not start."""

import asyncio
import os
from pathlib import Path

import click
import msgspec

from edge.app.sections import declared_sections
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import json_option, log_to_stderr, print_json, settings_option
from edge.cli.terminal.store_status import print_state
from edge.cli.terminal.switch_over import run_switch_over
from edge.config import load_settings
from edge.foundation.instant import now_ms
from edge.store.embedded import server_program
from edge.store.observer import open_observer
from edge.store.store_repair import repair_store
from edge.store.store_state import StoreState


@click.group(cls=CommandGroup)
def store() -> None:
    """Show and maintain the store: its servers and sentinels, and its files after a power cut.

    The exit status is 0 when all is well, 1 when something needs attention or a request is refused, and 2 when
    settings or arguments are invalid.
    """


@store.command(epilog="Example: edge store status")
@settings_option
@json_option
def status(settings_file: Path | None, *, as_json: bool) -> None:
    """Show the primary, its replicas, the sentinels, and what needs attention.

    Behind Sentinel: lag, clock and append-only file of each data node, what each sentinel sees, whether a majority
    confirms the primary, the generation of the store, and what its durability may lose. A single server shows its
    role, append-only file, clock and memory. The command needs no majority. The exit status is 1 when something needs
    attention.
    """

    async def read() -> StoreState:
        async with open_observer(settings.redis) as observer:
            return await observer.read()

    settings = load_settings(settings_file, os.environ, declared_sections())
    log_to_stderr()
    raise SystemExit(print_state(asyncio.run(read()), as_json=as_json))


@store.command("switch-over", epilog="Example: edge store switch-over --to 10.0.0.2:6379")
@click.option("--to", metavar="HOST:PORT", default="", help="The replica. [default: Sentinel chooses]")
@settings_option
@json_option
def switch_over(to: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Promote a replica, planned: before maintenance or an upgrade of the primary's machine.

    Nothing that was accepted is lost. Work pauses for one to two seconds. Sentinel changes the roles: one of Valkey 9
    or newer coordinates that with the primary; with an older one the writes of the primary are paused meanwhile. The
    exit status is 1 when nothing was changed or the end is not known: the message says which.
    """
    done = asyncio.run(run_switch_over(settings_file, to, (lambda _text: None) if as_json else print_text))
    if as_json:
        print_json(done)
    else:
        paused = f", writes paused for {done.paused_s:.1f} s" if done.paused_s is not None else ""
        print_text(f"{done.primary} is the primary instead of {done.former} after {done.took_s:.1f} s{paused}")


@store.command(epilog="Example: edge store repair /var/lib/redis-microdcs")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--server",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The program of the server that wrote the files. [default: the installed one]",
)
@json_option
def repair(directory: Path, server: Path | None, *, as_json: bool) -> None:
    """Cut off what a power cut left at the end of the append-only file of a stopped store.

    DIRECTORY is that of the store. Only a torn command and zeros at the end are cut off: the server had not confirmed
    them, so no acknowledged job is lost. The checks of the server have to accept the result; the damaged file is kept
    below DIRECTORY/repaired. Every other damage is refused. The units of the package call this after a failed start.
    """
    done = repair_store(directory, server or Path(server_program()), now_ms())
    if as_json:
        kept = str(done.kept) if done else None
        print_json({"repaired": done is not None, "kept": kept, **(msgspec.to_builtins(done.report) if done else {})})
    elif done is None:
        print_text(f"the append-only file in {directory} is whole")
    else:
        print_text(
            f"repaired: {done.report.cut_bytes} bytes cut off at the end of {done.report.file}, kept: {done.kept}"
        )
