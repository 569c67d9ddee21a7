"""The command `edge`: a table of commands, each loaded when it is called, and the report of errors."""

import importlib

import click

from edge import __version__
from edge.cli.terminal.output import print_text
from edge.errors import EdgeError, SettingsError

COMMANDS = {
    "init": "Write the settings of a site and try them.",
    "run": "Run the gateway until SIGTERM or SIGINT.",
    "demo": "Run a scene on this machine: a whole job, an alarm, or flows.",
    "jobs": "Show jobs; store, start, pause or end them.",
    "equipment": "Show equipment with its connection, open commands and faults, ping it, or release its open stops.",
    "dead-letters": "Show work that failed too often; retry or drop it.",
    "marks": "Show how many marks of messages each sender has, or drop those of a sender.",
    "refused": "Show refused messages and declined calls, newest first.",
    "replay": "Replay stored jobs: check that this release decides as they were decided.",
    "audit": "Show who did what, and verify that no record is missing or changed.",
    "locks": "Show who holds which lock, hold one, or delete those of dead owners.",
    "operations": "Schedule, show, watch and cancel operations: backups, support bundles, exports, recordings.",
    "maintenance": "Keep work from starting while people work at a plant.",
    "station": "Show and set what a station accepts: Work Masters, resources, job limit, rules, tags; also from files.",
    "check": "Check a settings file, a recipe or station files and report every fault.",
    "draw": "Draw a recipe or a running job as an IEC 61131-3 chart.",
    "flows": "Check, try, run and watch flows: cyclic work next to the jobs.",
    "worker": "Run a worker: it runs the nodes whose kinds are files of `[flows] nodes` or packages.",
    "simulate": "Run a recipe with simulated equipment, in virtual time or live.",
    "alarms": "Show alarms; acknowledge, confirm, reset, shelve or disable them.",
    "tags": "Show tags with their last samples, watch samples, or export history.",
    "rules": "Check and show rules, and run them over recorded samples in virtual time.",
    "schemas": "Write JSON Schemas of all payloads and of recipes, and an AsyncAPI document.",
    "opcua": "Manage certificates of the OPC UA server, and the applications and users that it trusts.",
    "users": "Manage the users of OPC UA and of the command line, and their second factor.",
    "sessions": "Show and end the sessions of OPC UA and of the command line.",
    "fleet": "Show the components of a plant, and send them signed commands.",
    "hw": "Detect and check the board, and write the files that it needs.",
    "doctor": "Examine a gateway and its dependencies, with advice for each fault.",
    "store": "Show and maintain the store: its servers and sentinels, and its files after a power cut.",
    "backup": "Save settings, certificates, users and jobs of a gateway in one file.",
    "restore": "Restore a gateway from a backup.",
    "support-bundle": "Collect what support needs in one file, without secrets.",
    "record": "Record the messages between the gateway and equipment, without secrets.",
    "sim": "Run simulated equipment.",
}
"""Name -> first line of the help. Each command is defined in the module or package of its name."""

_PACKAGES = {
    *("alarms", "tags", "rules", "jobs", "equipment", "flows", "station"),
    *("dead_letters", "fleet", "locks", "operations"),
}
"""Commands of more than one file; the group is defined in `commands.py` of the package."""


class CommandTable(click.Group):
    """Finds commands by name and imports only the called one, so that `edge --help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = f"edge.cli.{name}.commands" if name in _PACKAGES else f"edge.cli.{name}"
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without imports."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Invoke the command; report an expected error with its advice and an exit status."""
        try:
            return super().invoke(ctx)
        except EdgeError as error:
            print_text(f"edge: {error.message}", err=True)
            if error.advice:
                print_text(f"edge: {error.advice}", err=True)
            ctx.exit(2 if isinstance(error, SettingsError) else 1)
        except PermissionError as error:
            print_text(f"edge: {error.filename}: {error.strerror}", err=True)
            print_text("edge: Call it as root (sudo).", err=True)
            ctx.exit(1)


@click.group(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="microdcs-edge", message="microdcs-edge %(version)s")
def main() -> None:
    """Run ISA-95 jobs and their SFC recipes on an industrial gateway."""
