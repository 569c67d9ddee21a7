"""`edge recipes diff`: what differs between two recipes."""

from pathlib import Path
from typing import Any

import click
import msgspec

from edge.cli.files import compiled_or_exit
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import FILE, json_option, read_json
from edge.features.recipes.difference import DifferenceKind, RecipeDifference, differences
from edge.model.recipe import Recipe

_SIGNS = {DifferenceKind.ADDED: "+", DifferenceKind.REMOVED: "-", DifferenceKind.CHANGED: "~"}


@click.command(epilog="Example: edge recipes diff released.json draft.json")
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@json_option
def diff(old: Path, new: Path, *, as_json: bool) -> None:
    """Compare two recipes, element by element.

    OLD and NEW contain a recipe as JSON; - is standard input. `+` is an element that NEW adds, `-` one that it removes,
    `~` a member that it changes. Order and spelling of the JSON do not count. The exit status is 0 when the recipes
    are the same, 1 when they differ, 2 when one of them is invalid.
    """
    found = differences(_read(old), _read(new))
    if as_json:
        print_json({"differences": found})
    elif not found:
        print_text("the recipes are the same")
    for item in () if as_json else found:
        print_text(_line(item))
    if found:
        raise SystemExit(1)


def _read(file: Path) -> Recipe:
    return compiled_or_exit(read_json(file)).recipe


def _line(item: RecipeDifference) -> str:
    line = f"{_SIGNS[item.kind]} {item.element} {item.name}".rstrip()
    if item.kind is not DifferenceKind.CHANGED:
        return line
    return f"{line}: {item.member} {_value(item.before)} → {_value(item.after)}"


def _value(value: Any) -> str:
    match value:
        case None:
            return "(default)"
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()
