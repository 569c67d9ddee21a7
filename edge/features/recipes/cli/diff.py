"""`edge recipes diff`: what differs between two recipes."""

from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from edge.cli.files import compiled_or_exit
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import (
    FILE,
    StoreAccess,
    json_option,
    read_json,
    run_on_store,
    scope_option,
    settings_option,
)
from edge.features.recipes.cli.revisions import desk_at
from edge.features.recipes.difference import DifferenceKind, RecipeDifference, differences
from edge.model.recipe import Recipe

_SIGNS = {DifferenceKind.ADDED: "+", DifferenceKind.REMOVED: "-", DifferenceKind.CHANGED: "~"}


@click.command(epilog="Example: edge recipes diff released.json draft.json")
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--id", "work_master", help="OLD and NEW are numbers of revisions of this Work Master.")
@scope_option
@settings_option
@json_option
def diff(
    old: Path, new: Path, work_master: str | None, scope: str | None, settings_file: Path | None, *, as_json: bool
) -> None:
    """Compare two recipes, element by element.

    OLD and NEW contain a recipe as JSON; - is standard input. With --id they are numbers of revisions. `+` is an
    element that NEW adds, `-` one that it removes, `~` a member that it changes. Order and spelling of the JSON do not
    count. The exit status is 0 when the recipes are the same, 1 when they differ, 2 when one of them is invalid.
    """
    if work_master is None:
        found = differences(_read(old), _read(new))
    else:
        found = differences(*run_on_store(settings_file, partial(_read_stored, work_master, scope, (old, new))))
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


async def _read_stored(
    work_master: str, scope: str | None, named: tuple[Path, Path], at: StoreAccess
) -> tuple[Recipe, Recipe]:
    """Return the recipes of two revisions. Raises Refused for an unknown one."""
    desk, chosen = desk_at(at), at.scope(scope)
    numbers = [str(name) for name in named]
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.UsageError("With --id name two revisions by their numbers, as in: diff 3 4 --id WM-AXLE-FIT-001")
    old, new = [(await desk.revision(chosen, work_master, int(number))).work_master.data for number in numbers]
    return compiled_or_exit(old).recipe, compiled_or_exit(new).recipe


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
