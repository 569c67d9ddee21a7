"""The command `edge`: a table of commands, each loaded when it is called, and the report of errors."""

import importlib
from typing import NoReturn

import click

from edge import __version__
from edge.app.feature import Noun
from edge.app.features import features
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import is_json, print_failure, record_json
from edge.foundation.errors import EdgeError, Refused, SettingsError, Unavailable

_CORE = {
    "run": Noun("edge.cli.run", "Run the gateway until SIGTERM or SIGINT."),
    "jobs": Noun("edge.cli.jobs.commands", "Show jobs; store, start, pause or end them."),
    "equipment": Noun(
        "edge.cli.equipment",
        "Show equipment with its connection, open commands and faults, ping it, or release its open stops.",
    ),
    "dead-letters": Noun("edge.cli.dead_letters", "Show work that failed too often; retry or drop it."),
    "marks": Noun("edge.cli.messages", "Show how many marks of messages each sender has, or drop those of a sender."),
    "refused": Noun("edge.cli.messages", "Show refused messages and declined calls, newest first."),
    "replay": Noun(
        "edge.cli.jobs.history", "Replay stored jobs: check that this release decides as they were decided."
    ),
    "audit": Noun("edge.cli.audit", "Show who did what, and verify that no record is missing or changed."),
    "locks": Noun("edge.cli.locks", "Show who holds which lock, hold one, or delete those of dead owners."),
    "operations": Noun(
        "edge.cli.operations",
        "Schedule, show, watch and cancel operations: backups, support bundles, exports, recordings.",
    ),
    "maintenance": Noun("edge.cli.maintenance", "Keep work from starting while people work at a plant."),
    "station": Noun(
        "edge.cli.station",
        "Show and set what a station accepts: Work Masters, resources, job limit, rules, tags; also from files.",
    ),
    "check": Noun("edge.cli.files", "Check a settings file, a recipe or station files and report every fault."),
    "draw": Noun("edge.cli.files", "Draw a recipe or a running job as an IEC 61131-3 chart."),
    "schemas": Noun("edge.cli.schemas", "Write JSON Schemas of all payloads and of recipes, and an AsyncAPI document."),
    "opcua": Noun(
        "edge.cli.opcua", "Manage certificates of the OPC UA server, and the applications and users that it trusts."
    ),
    "users": Noun(
        "edge.cli.users", "Manage the users of page, OPC UA and command line: roles, passwords, PINs, badges, tokens."
    ),
    "sessions": Noun("edge.cli.users", "Show and end the sessions of station page, OPC UA and command line."),
    "store": Noun(
        "edge.cli.store", "Show and maintain the store: its servers and sentinels, and its files after a power cut."
    ),
}
"""The nouns of the core."""


def commands() -> dict[str, Noun]:
    """Return every command of this gateway by its name: those of the core, then those of each feature."""
    return _CORE | {name: command for feature in features() for name, command in feature.commands.items()}


class CommandTable(CommandGroup):
    """Finds commands by name and imports only the called one, so that `edge --help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if (noun := commands().get(cmd_name)) is None:
            return None
        command: click.Command = getattr(importlib.import_module(noun.module), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without imports."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in commands().items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an error of a command line with `--json` is JSON."""
        record_json(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            self._report(ctx, error)

    def invoke(self, ctx: click.Context) -> object:
        """Invoke the command; report an expected error with its advice and an exit status."""
        try:
            return super().invoke(ctx)
        except EdgeError as error:
            print_failure(_kind(error), (error.message,), error.advice)
            ctx.exit(2 if isinstance(error, SettingsError) else 1)
        except PermissionError as error:
            print_failure("no_permission", (f"{error.filename}: {error.strerror}",), "Call it as root (sudo).")
            ctx.exit(1)
        except click.UsageError as error:
            self._report(ctx, error)

    @staticmethod
    def _report(ctx: click.Context, error: click.UsageError) -> NoReturn:
        """Report an error of the command line as JSON; without `--json` click does it."""
        if not is_json():
            raise error
        print_failure("invalid_arguments", (error.format_message(),))
        ctx.exit(error.exit_code)


def _kind(error: EdgeError) -> str:
    """Return the kind of an error, as the HTTP API states it."""
    match error:
        case Refused():
            return error.kind
        case Unavailable():
            return "unavailable"
        case SettingsError():
            return "invalid_settings"
        case _:
            return "internal"


@click.group(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="microdcs-edge", message="microdcs-edge %(version)s")
def main() -> None:
    """Run ISA-95 jobs and their SFC recipes on an industrial gateway."""
