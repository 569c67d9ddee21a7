"""`edge recipes import` and `export`: recipes from and to the files of PLC tools."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import click

from edge.cli.files import compiled_or_exit
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import (
    FILE,
    json_option,
    open_access,
    read_bytes,
    read_json,
    scope_option,
    settings_option,
)
from edge.features.recipes.plcopen.finding import PlcFinding
from edge.features.recipes.plcopen.reader import import_plcopen
from edge.features.recipes.plcopen.writer import export_plcopen
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text
from edge.store.resources import load_work_master_at_revision


@click.command("import", epilog="Example: edge recipes import press.xml --map commands.json > press.json")
@click.argument("file", type=FILE)
@click.option("--pou", default="", help="The POU to read, where several have a chart.")
@click.option("--map", "map_file", type=FILE, help="JSON file: which command or event an action of the PLC is.")
@click.option("--defaults", is_flag=True, help="Variables have their declared or zero value, as in a PLC.")
@json_option
def import_recipe(file: Path, pou: str, map_file: Path | None, *, defaults: bool, as_json: bool) -> None:
    """Read a chart of PLCopen TC6 XML as a recipe.

    The recipe is printed, and warnings on standard error; with --json both in one object. Nothing is stored. What
    cannot be carried over is a fault: all are reported with their places, and the exit status is 2.
    """
    try:
        data = read_bytes(file)
    except OSError as error:
        usage_failure(f"{file}: cannot be read: {error.strerror}")
    imported = import_plcopen(data, pou, _read_map(map_file), has_defaults=defaults)
    if imported.recipe is None:
        _fail(imported.faults, imported.warnings, as_json=as_json)
    if as_json:
        print_json({"recipe": imported.recipe, "warnings": _public(imported.warnings)})
        return
    _print_warnings(imported.warnings)
    click.echo(json.dumps(imported.recipe, indent=2, ensure_ascii=False))


@click.command(epilog="Example: edge recipes export rear-axle.json --plcopen -o rear-axle.xml")
@click.argument("recipe", type=FILE, required=False)
@click.option("--stored", metavar="ID", help="The recipe of this Work Master in the store, in place of RECIPE.")
@click.option("--plcopen", is_flag=True, required=True, expose_value=False, help="As a chart of PLCopen TC6 XML 2.01.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write a file.")
@scope_option
@settings_option
def export(
    recipe: Path | None,
    stored: str | None,
    output: Path | None,
    scope: str | None,
    settings_file: Path | None,
) -> None:
    """Write a recipe as a file of another tool.

    RECIPE contains the recipe as JSON; - is standard input. The XML has the recipe in it, too: imported again, it is
    the same recipe, unless another tool has changed its chart. The exit status is 2 when the recipe is invalid.
    """
    if recipe is not None and stored is None:
        name, data = "Recipe" if str(recipe) == "-" else recipe.stem, read_json(recipe)
    elif stored is not None and recipe is None:
        name, data = stored, asyncio.run(_read_stored(stored, scope, settings_file))
    else:
        raise click.UsageError("Name either a RECIPE or a --stored one.")
    created = datetime.now(UTC).replace(microsecond=0, tzinfo=None).isoformat()
    written = export_plcopen(compiled_or_exit(data), data, name, created)
    if output is None:
        click.echo(written, nl=False)
        return
    try:
        output.write_bytes(written)
    except OSError as error:
        usage_failure(f"{output}: cannot be written: {error.strerror}")


async def _read_stored(work_master: str, scope: str | None, settings_file: Path | None) -> object:
    async with open_access(settings_file) as access:
        entry = await load_work_master_at_revision(access.store, work_master, access.scope(scope))
    if entry is None:
        raise Refused(
            "unknown_work_master",
            Text.of("Work Master {work_master!r} is not known to this station", work_master=work_master),
        )
    return entry.work_master.data


def _read_map(file: Path | None) -> dict[str, Any]:
    actions = read_json(file) if file is not None else {}
    if not isinstance(actions, dict):
        usage_failure(f"{file}: a map must be an object: members of an action of a recipe, by the name in the PLC")
    return actions


def _fail(faults: Sequence[PlcFinding], warnings: Sequence[PlcFinding], *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"faults": _public(faults), "warnings": _public(warnings)})
        raise SystemExit(2)
    for fault in faults:
        print_text(f"edge: {fault.stated(ENGLISH)}", err=True)
    raise SystemExit(2)


def _print_warnings(warnings: Sequence[PlcFinding]) -> None:
    for warning in warnings:
        print_text(f"warning: {warning.stated(ENGLISH)}", err=True)


def _public(findings: Sequence[PlcFinding]) -> list[dict[str, Any]]:
    return [finding.public(ENGLISH) for finding in findings]
