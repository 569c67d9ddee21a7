"""Groups of commands, how they are listed, what features add to them, and arguments that are one of several words."""

import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

import click

from edge.app.features import command_options, subcommands
from edge.cli.terminal.output import did_you_mean

_WHOLE = 1000
_F = TypeVar("_F", bound=Callable[..., Any])


def further_options(command: str) -> Callable[[_F], _F]:
    """Return the decorator that adds the options of features to a command of the core, such as `jobs results`."""

    def add(function: _F) -> _F:
        for location in reversed(command_options(command)):
            function = pkgutil.resolve_name(location)(function)
        return function

    return add


class Word(click.Choice[str]):
    """One of several words; a mistyped one is refused with the word that is meant, all spelled as in the help."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return why a word is refused."""
        listed = f"{value!r} is not one of {', '.join(self.choices)}."
        return f"{listed} {did_you_mean(str(value), self.choices)}".rstrip()


class CommandGroup(click.Group):
    """A group of commands. The list of click cuts their sentences off at the end of the line.

    Click suggests names of the commands that it knows itself; these are found by name.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument; a mistyped name is refused with the name that is meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the first sentence of its help."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(_WHOLE)) for name, command in listed if command is not None]
            )


class OpenGroup(CommandGroup):
    """A noun of the core: features declare further commands below it, each imported when it is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*self.commands, *subcommands(self.name or "")})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name."""
        if (location := subcommands(self.name or "").get(cmd_name)) is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = pkgutil.resolve_name(location)
        return command


class OrderedGroup(CommandGroup):
    """Lists its commands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names."""
        return list(self.commands)
