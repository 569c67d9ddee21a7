"""Prints text without control characters: text from equipment or MES must not control the terminal."""

import click


def printable(text: object) -> str:
    """Return text with every control character replaced by a blank."""
    return "".join(each if each.isprintable() else " " for each in str(text))


def print_text(text: str, *, err: bool = False) -> None:
    """Print text line by line without control characters, on standard output or standard error."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)
