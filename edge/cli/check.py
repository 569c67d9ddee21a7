"""`edge check`: reports every fault of a settings file, a recipe or station files before they are used."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from edge.app.secrets_check import examine_secrets
from edge.app.sections import declared_sections
from edge.app.service_user import access_problems
from edge.cli.terminal.command_group import OpenGroup
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import FILE, json_option, print_json, read_bytes
from edge.config import load_settings, main_file
from edge.foundation.errors import Refused, SettingsError
from edge.model.json_text import read_json_text
from edge.sfc.compiler import RejectedRecipe, compile_recipe

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group(cls=OpenGroup)
def check() -> None:
    """Check a settings file, a recipe or station files and report every fault.

    The exit status is 0 without a fault, else 2.
    """


@check.command(epilog="Example: edge check settings /etc/microdcs-edge/edge.toml")
@click.argument("file", type=_FILE)
@json_option
def settings(file: Path, *, as_json: bool) -> None:
    """Check a settings file.

    FILE is read as by `edge run`: with conf.d/*.toml in its folder and the EDGE_ variables of the
    environment. Passwords and keys that others can read are reported as warnings. As root on an installed gateway, it
    also names files that the service cannot read.
    """
    main, loaded, problems = main_file(file, os.environ), None, list[str]()
    try:
        loaded = load_settings(file, os.environ, declared_sections())
    except SettingsError as error:
        problems += error.problems
    problems += access_problems(main.absolute(), loaded)
    warnings = tuple(examine_secrets(loaded, main)) if loaded else ()
    print_result(file, problems, warnings, as_json=as_json)


@check.command(epilog="Example: edge check recipe rear-axle.json")
@click.argument("file", type=FILE)
@json_option
def recipe(file: Path, *, as_json: bool) -> None:
    """Check an SFC recipe.

    FILE contains the recipe as JSON; - is standard input. Valid but suspicious parts are reported as warnings.
    """
    try:
        data = read_json_text(read_bytes(file))
    except OSError as error:
        print_result(file, [f"cannot be read: {error.strerror}"], (), as_json=as_json)
    except Refused as refused:
        print_result(file, [refused.message], (), as_json=as_json)
    match compile_recipe(data):
        case RejectedRecipe(faults=faults):
            print_result(file, faults, (), as_json=as_json)
        case net:
            print_result(file, (), net.warnings, as_json=as_json)


def print_result(file: Path, problems: Sequence[str], warnings: Sequence[str], *, as_json: bool) -> NoReturn:
    """Print the result and exit with the status."""
    if as_json:
        print_json({"file": click.format_filename(file), "problems": problems, "warnings": warnings})
    else:
        for problem in problems:
            print_text(problem)
        for warning in warnings:
            print_text(f"warning: {warning}")
        print_text(f"{file}: {len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}")
    raise SystemExit(2 if problems else 0)
