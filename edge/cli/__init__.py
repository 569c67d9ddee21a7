"""The command `edge`: a table of commands, each loaded when it is called, and one place that tells errors."""

import importlib

import click

from edge import __version__
from edge.cli.terminal.output import print_text
from edge.errors import EdgeError, SettingsError

COMMANDS = {
    "run": "Run the gateway until it is told to stop (SIGTERM, SIGINT).",
    "demo": "Run one whole job on real parts, on this machine.",
    "jobs": "Look at jobs, and store, start, hold or end them.",
    "equipment": "Look which equipment is there, what it owes and what failed, or ask it now.",
    "dead-letters": "Look at work that was given up, and have it done again or drop it.",
    "refused": "Look at messages that could not be taken, the newest first.",
    "station": "Show and set what a station may use: Work Masters, equipment, material, people, the limit of jobs.",
    "check": "Tell every fault of a settings file or a recipe.",
    "draw": "Draw a recipe, or a job that runs, as an IEC 61131-3 chart.",
    "flows": "Check, try and describe flows: cyclic work next to the jobs.",
    "simulate": "Run a recipe with simulated equipment, in virtual time or live.",
    "rules": "Check rules, and run them over recorded samples in virtual time.",
    "schemas": "Write the JSON Schemas of all payloads, and of recipes.",
    "opcua": "Manage certificates and users of the OPC UA server.",
    "hw": "Detect and check the board, and write the files that it needs.",
    "doctor": "Examine a gateway and all it depends on; say what to do.",
    "backup": "Save settings, certificates, users and jobs of a gateway in one file.",
    "restore": "Bring back what a backup has saved.",
    "support-bundle": "Gather what support needs in one file, without secrets.",
    "record": "Record what goes between the gateway and a piece of equipment, without secrets.",
    "sim": "Run simulated equipment against a broker.",
}
"""Each is the click command of its name in the module of its name; its help begins with these words."""

_PACKAGES = {"jobs", "equipment", "flows", "station", "dead_letters"}
"""Commands of more than one file: the group stands in `commands.py` of the package of its name."""


class CommandTable(click.Group):
    """Finds commands by name and imports only the one that is called: `edge --help` has to answer at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command of that name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = f"edge.cli.{name}.commands" if name in _PACKAGES else f"edge.cli.{name}"
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Calls the command; an expected error becomes its message, what to do next, and an exit status."""
        try:
            return super().invoke(ctx)
        except EdgeError as error:
            print_text(f"edge: {error.message}", err=True)
            if error.advice:
                print_text(f"edge: {error.advice}", err=True)
            ctx.exit(2 if isinstance(error, SettingsError) else 1)


@click.group(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="microdcs-edge", message="microdcs-edge %(version)s")
def main() -> None:
    """Run ISA-95 jobs and their SFC recipes on an industrial gateway."""
