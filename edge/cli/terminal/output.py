"""Prints text without control characters: text from equipment or MES must not control the terminal."""

import shutil
import sys
import textwrap
from typing import Final

import click

_NARROWEST: Final = 24
"""The least width of a text that continues below itself."""


def printable(text: object) -> str:
    """Return text with every control character replaced by a blank."""
    return "".join(word if word.isprintable() else " " for word in str(text))


def wrapped(text: object, indent: int) -> str:
    """Return printable text that stands at a column and continues there on the next line of a narrow terminal.

    For a file or a pipe it stays one line. A word, such as an id, is never cut.
    """
    line = printable(text)
    if not sys.stdout.isatty():
        return line
    width = max(_NARROWEST, shutil.get_terminal_size().columns - indent)
    lines = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text line by line without control characters, on standard output or standard error."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)
