"""Lists the commands of a group with the whole first sentence of their help."""

import click

_WHOLE = 1000


class CommandGroup(click.Group):
    """A group of commands. The list of click cuts their sentences off at the end of the line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the first sentence of its help."""
        listed = {name: self.commands[name] for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(_WHOLE)) for name, each in listed.items()])


class OrderedGroup(CommandGroup):
    """Lists its commands in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names."""
        return list(self.commands)
