"""`edge recipes import`: recipes from the files of PLC tools."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import FILE, json_option, read_bytes, read_json
from edge.features.recipes.plcopen.finding import PlcFinding
from edge.features.recipes.plcopen.reader import import_plcopen
from edge.foundation.text import ENGLISH


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


def _read_map(file: Path | None) -> dict[str, Any]:
    actions = read_json(file) if file is not None else {}
    if not isinstance(actions, dict):
        usage_failure(f"{file}: a map must be an object: members of an action of a recipe, by the name in the PLC")
    return actions


def _fail(faults: Sequence[PlcFinding], warnings: Sequence[PlcFinding], *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"faults": _public(faults), "warnings": _public(warnings)})
    for fault in faults:
        print_text(f"edge: {fault.stated(ENGLISH)}", err=True)
    raise SystemExit(2)


def _print_warnings(warnings: Sequence[PlcFinding]) -> None:
    for warning in warnings:
        print_text(f"warning: {warning.stated(ENGLISH)}", err=True)


def _public(findings: Sequence[PlcFinding]) -> list[dict[str, Any]]:
    return [finding.public(ENGLISH) for finding in findings]
