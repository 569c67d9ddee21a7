"""The reference page of commands, written from their help: `python -m tests.cli.reference`."""

import re
import textwrap
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from edge.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
WIDTH = 120


def commands(context: click.Context) -> Iterator[click.Context]:
    """Walk through a command and all below it."""
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(click.Context(command, info_name=name, parent=context))


def heading(context: click.Context) -> str:
    """Return the heading of a command: one level lower for one of a group."""
    return f"{'#' * (2 + context.command_path.count(' ') - 1)} {context.command_path}"


def section(context: click.Context) -> str:
    """Write the section of a command: what it does, how it is called, what its options mean, an example."""
    command = context.command
    reported = [heading(context), *_paragraphs(command.help or "")]
    # A group that may be called without a command has options of its own.
    if not isinstance(command, click.Group) or command.invoke_without_command:
        reported.append(f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}")
        if rows := list(_rows(context)):
            reported.append("\n".join(("| option | meaning |", "|---|---|", *rows)))
        if command.epilog:
            reported.append(re.sub(r"^Example: (.*)$", r"Example: `\1`", command.epilog))
    return "\n\n".join(reported) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in cleandoc(text).split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), WIDTH, break_on_hyphens=False, break_long_words=False)


def _rows(context: click.Context) -> Iterator[str]:
    for option in context.command.params:
        record = option.get_help_record(context)
        if record and record[1]:
            names, meaning = (cell.replace("|", "\\|") for cell in record)
            yield f"| `{names}` | {meaning} |"


def page(written: str) -> str:
    """Return the page: what stands above its first section, and a section for each command."""
    preamble, _, _ = written.partition("\n## ")
    top = click.Context(main, info_name="edge")
    sections = [section(command) for command in commands(top) if command is not top]
    return "\n".join((preamble, *sections))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
