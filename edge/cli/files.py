"""`edge check` and `edge draw`: finds faults in files, draws recipes."""

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from edge.app.features import gateway_settings
from edge.app.gateway_files import examine_secrets
from edge.app.service_user import access_problems
from edge.cli.terminal.command_group import OpenGroup
from edge.cli.terminal.output import print_json, print_text, usage_failure
from edge.cli.terminal.store_access import FILE, json_option, open_access, read_json, settings_option
from edge.config import main_file
from edge.drawing.marks import Marks, marks_of
from edge.drawing.reading import read_chart
from edge.drawing.sheet import MIN_WIDTH, draw_within
from edge.drawing.sheet import draw as lay_out
from edge.drawing.svg import chart_svg
from edge.drawing.text import ANSI, PLAIN, chart_text
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.text import Text
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.sfc.net import Net
from edge.station.clock import store_clock
from edge.store.runs import load
from edge.store.set_mirrors import load_copies

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
        loaded = gateway_settings(file)
    except SettingsError as error:
        problems += error.problems
    problems += access_problems(main.absolute(), loaded)
    warnings = tuple(examine_secrets(loaded, main)) if loaded else ()
    print_result(file, problems, warnings, as_json=as_json)


def print_result(file: Path, problems: Sequence[str], warnings: Sequence[str], *, as_json: bool) -> NoReturn:
    """Print the result and exit with the status."""
    if as_json:
        print_json({"file": click.format_filename(file), "faults": problems, "warnings": warnings})
    else:
        for problem in problems:
            print_text(problem)
        for warning in warnings:
            print_text(f"warning: {warning}")
        print_text(f"{file}: {len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}")
    raise SystemExit(2 if problems else 0)


def compiled_or_exit(data: object) -> Net:
    """Compile a recipe; print its faults and exit with status 2 when it is rejected."""
    net = compile_recipe(data)
    if isinstance(net, RejectedRecipe):
        usage_failure(*net.faults)
    return net


_PIPE_SIZE = (120, 24)


@click.command(epilog="Example: edge draw rear-axle.json -o rear-axle.svg")
@click.argument("recipe", type=FILE, required=False)
@click.option("--job", "job_id", help="Draw this job instead: active steps, times, state of each action.")
@settings_option
@click.option("-o", "--output", type=_FILE, help="Write a file: SVG when its name ends with .svg, else Unicode.")
@click.option(
    "--width",
    type=click.IntRange(min=MIN_WIDTH),
    help=f"Longest line of a Unicode chart, at least {MIN_WIDTH}. [default: that of the terminal]",
)
def draw(
    recipe: Path | None, job_id: str | None, settings_file: Path | None, output: Path | None, width: int | None
) -> None:
    """Draw a recipe or a running job as an IEC 61131-3 chart.

    RECIPE contains the recipe as JSON; - is standard input. A chart wider than the terminal is folded: its branches
    are drawn one below the other. The exit status is 2 when the recipe is invalid; all faults are reported.
    """
    if (recipe is None) == (job_id is None):
        raise click.UsageError("Name either a RECIPE or a --job.")
    if recipe is not None:
        title = "" if str(recipe) == "-" else recipe.stem
        _write(title, compiled_or_exit(read_json(recipe)), None, output, width)
    elif job_id is not None:
        net, marks = asyncio.run(_job(job_id, settings_file))
        _write("", net, marks, output, width)


async def _job(job_id: str, settings_file: Path | None) -> tuple[Net, Marks]:
    """Read the run of a job and its recipe from the store."""
    async with open_access(settings_file) as at:
        now = (await store_clock(at.store))()
        stored_run = await load(at.store, job_id)
        net = compiled_or_exit(json.loads(stored_run.recipe)) if stored_run else None
        mirrors = await load_copies(at.store, net.mirrors) if net else {}
    if stored_run is None or net is None:
        raise Refused(
            "unknown_job",
            Text.of("no run of job {job_id!r} is stored", job_id=job_id),
            "A job has a run once it was started.",
        )
    return net, marks_of(net, stored_run.run, now, mirrors=mirrors)


def _write(title: str, net: Net, marks: Marks | None, output: Path | None, width: int | None) -> None:

    chart = read_chart(net.recipe)
    if output is not None and output.suffix.lower() == ".svg":
        document = chart_svg(lay_out(chart, title, marks))
    else:
        columns = width or max(MIN_WIDTH, shutil.get_terminal_size(_PIPE_SIZE).columns)
        drawing = draw_within(chart, title, marks, columns)
        if output is None:
            # click removes the colours when the output is not a terminal.
            click.echo("\n".join(chart_text(drawing, ANSI)))
            return
        document = "\n".join(chart_text(drawing, PLAIN)) + "\n"
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        message = Text.of("{output}: cannot be written: {reason}", output=output, reason=error.strerror)
        raise Unavailable(message, "Name a file where you may write.") from error
