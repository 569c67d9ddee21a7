"""How commands work on the store of the settings: their usual options, their answers, and the files they read."""

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Concatenate, Protocol, TypeVar

import click
import structlog
from msgspec import Struct
from rich.console import RenderableType

from edge.app.features import gateway_settings
from edge.cli.terminal.output import print_json, print_text, printable, usage_failure
from edge.cli.terminal.table import print_table
from edge.config import Settings
from edge.foundation.errors import Refused
from edge.model.json_value import read_json_text
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.store.reads import load_scopes

_T = TypeVar("_T")

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
    settings = gateway_settings(settings_file)
    log_to_stderr()
    async with open_store(settings.redis, consumer=None) as store:
        yield StoreAccess(settings, store)


class CommandOutput(Struct, frozen=True):
    """What a command prints: `data` with --json, else texts and what a console renders; a failed one exits with 1."""

    data: object
    parts: RenderableType | tuple[RenderableType, ...]
    is_failed: bool = False

    def print(self, *, as_json: bool) -> None:
        """Print the output; exit with status 1 when it is failed."""
        if as_json:
            print_json(self.data)
        else:
            for part in self.parts if isinstance(self.parts, tuple) else (self.parts,):
                if isinstance(part, str):
                    print_text(part)
                else:
                    print_table(part)
        if self.is_failed:
            raise SystemExit(1)


class Printed(Protocol):
    """What a command prints in a form of its own."""

    def print(self, *, as_json: bool) -> None:
        """Print it; exit with another status than 0 when it is failed."""


def run_on_store(settings_file: Path | None, work: Callable[[StoreAccess], Awaitable[_T]]) -> _T:
    """Run work on the open store of the settings and return its result. Raises SettingsError and Unavailable."""

    async def run() -> _T:
        async with open_access(settings_file) as at:
            return await work(at)

    return asyncio.run(run())


def store_command(work: Callable[Concatenate[StoreAccess, ...], Awaitable[Printed | str]]) -> Callable[..., None]:
    """Build a command of work on the open store: `--settings` and `--json` are options, its result is printed.

    @sessions.command("list")
    @store_command
    async def list_(at: StoreAccess) -> CommandOutput:

    A text is printed as it is, also with `--json`.
    """

    @settings_option
    @json_option
    @functools.wraps(work)
    def command(*, settings_file: Path | None, as_json: bool, **options: Any) -> None:
        output = run_on_store(settings_file, lambda at: work(at, **options))
        if isinstance(output, str):
            print_text(output)
        else:
            output.print(as_json=as_json)

    return command


def store_action(work: Callable[Concatenate[StoreAccess, ...], Awaitable[str]]) -> Callable[..., None]:
    """Build a command of work on the open store that prints a text: only `--settings` is an option."""

    @settings_option
    @functools.wraps(work)
    def command(*, settings_file: Path | None, **options: Any) -> None:
        print_text(run_on_store(settings_file, lambda at: work(at, **options)))

    return command


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
