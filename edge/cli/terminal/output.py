"""Prints for people: who wrote a text may not move their cursor, set their title or colour what is not theirs."""

import click


def printable(text: object) -> str:
    """Give text without what could move a terminal's cursor: equipment and MES may have written anything."""
    return "".join(each if each.isprintable() else " " for each in str(text))


def print_text(text: str, *, err: bool = False) -> None:
    """Print text, line by line, as `printable` gives it; on standard error if so wished."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)
