"""`edge check recipe`: finds every fault of a recipe."""

from pathlib import Path

import click

from edge.app.features import recipe_checks
from edge.cli.files import print_result
from edge.cli.terminal.store_access import FILE, json_option, read_bytes
from edge.foundation.errors import Refused
from edge.model.json_value import read_json_text
from edge.sfc.compiler import RejectedRecipe, compile_recipe


@click.command(epilog="Example: edge check recipe rear-axle.json")
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
    match compile_recipe(data, checks=recipe_checks()):
        case RejectedRecipe(faults=faults):
            print_result(file, faults, (), as_json=as_json)
        case net:
            print_result(file, (), net.warnings, as_json=as_json)
