"""A group lists the whole first sentence of each command."""

import click
from click.testing import CliRunner

from edge.cli.terminal.command_group import CommandGroup


def test_help_of_a_group_has_the_whole_sentence_of_each_command() -> None:
    @click.group(cls=CommandGroup)
    def tools() -> None:
        pass

    @tools.command()
    def show() -> None:
        """Show one piece of equipment as each gateway that uses it reports it, with everything else.

        More.
        """

    @tools.command()
    def ask() -> None:
        """Ask."""

    listed = " ".join(CliRunner().invoke(tools, ["--help"]).output.partition("Commands:")[2].split())
    assert listed == (
        "ask Ask. show Show one piece of equipment as each gateway that uses it reports it, with everything else."
    )
