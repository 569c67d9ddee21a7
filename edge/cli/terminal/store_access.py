"""Shared parts of the commands: options, access to the store of the settings, reading files, JSON output."""

import os
import sys
from collections.abc import AsyncIterator, Iterable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec
import structlog
from msgspec import Struct
from rich.console import Console

from edge.app.features import declared_sections
from edge.cli.terminal.output import print_text, printable
from edge.config import Settings, load_settings
from edge.foundation.errors import Refused
from edge.model.json_value import read_json_text
from edge.store.bulk_reads import load_scopes
from edge.store.client import Store
from edge.store.opening import open_store

FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)

settings_option = click.option(
    "--settings",
    "settings_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file, as for `edge run`. [default: /etc/microdcs-edge/edge.toml]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
scope_option = click.option("--scope", help="Scope of the request. [default: the one of the settings]")
one_scope_option = click.option("--scope", help="This scope only, of any gateway. [default: all of the settings]")

SOURCE = "urn:microdcs-edge:cli"
"""The CloudEvents source of the requests of commands."""

_NEVER_CUT = 100_000


class StoreAccess(Struct, frozen=True):
    """The settings and their store. Work that is added here is executed by a gateway."""

    settings: Settings
    store: Store

    def scope(self, asked: str | None) -> str:
        """Return the scope of a request: a scope of the settings, by default their only one."""
        served = self.settings.gateway.scopes
        if asked is None and len(served) == 1:
            return served[0]
        if asked not in served:
            raise _scope_error(f"name no scope {asked!r}" if asked else "name several scopes", served)
        return asked

    async def scopes(self, asked: str | None) -> Sequence[str]:
        """Return the scopes to show: all of the settings, or one of any gateway on this store."""
        served = self.settings.gateway.scopes
        if asked is None:
            return served
        if asked not in served and asked not in (known := await load_scopes(self.store)):
            raise _scope_error(f"name no scope {asked!r}, nor does the store", sorted(known.union(served)))
        return (asked,)


def _scope_error(problem: str, known: Iterable[str]) -> click.UsageError:
    return click.UsageError(f"the settings {problem}: use --scope {' or --scope '.join(known)}.")


@asynccontextmanager
async def open_access(settings_file: Path | None) -> AsyncIterator[StoreAccess]:
    """Open the store of the settings. Raises SettingsError and Unavailable."""
    settings = load_settings(settings_file, os.environ, declared_sections())
    log_to_stderr()
    async with open_store(settings.redis, consumer=None) as store:
        yield StoreAccess(settings, store)


def log_to_stderr(level: str = "error") -> None:
    """Log to standard error from this level on: the results are printed, so that lower levels add nothing."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, _error_in_a_line, structlog.dev.ConsoleRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _error_in_a_line(_logger: object, _method: str, record: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the traceback of a record by the error, in one line."""
    if record.pop("exc_info", None) and (error := sys.exception()):
        record["reason"] = printable(f"{type(error).__name__}: {error}")
    return record


def read_json(file: Path) -> object:
    """Read JSON from a file, or standard input for `-`, within the limits of a message; fail the command on a fault."""
    try:
        return read_json_text(read_bytes(file))
    except OSError as error:
        usage_failure(f"{file}: cannot be read: {error.strerror}")
    except Refused as refusal:
        usage_failure(f"{file}: {refusal.message}")


def read_bytes(file: Path) -> bytes:
    """Read a file, or standard input for `-`."""
    return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()


def usage_failure(*reasons: str) -> NoReturn:
    """Print the faults of the arguments and exit with status 2."""
    for reason in reasons:
        print_text(f"edge: {reason}", err=True)
    raise SystemExit(2)


def print_json(data: object) -> None:
    """Print one line of JSON; data types of the model as on the wire."""
    click.echo(msgspec.json.encode(data))


def open_console() -> Console:
    """Return a console as wide as the terminal; to a file or a pipe lines are not folded."""
    found = Console(highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(width=_NEVER_CUT, highlight=False, markup=False, emoji=False)
