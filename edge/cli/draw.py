"""`edge draw`: draws a recipe or a running job as an IEC 61131-3 chart."""

import asyncio
import json
import shutil
from pathlib import Path

import click

from edge.chart.marks import Marks, marks_of
from edge.chart.page import MIN_WIDTH, draw_within
from edge.chart.page import draw as lay_out
from edge.chart.reading import read_chart
from edge.chart.svg import chart_svg
from edge.chart.text import ANSI, PLAIN, chart_text
from edge.cli.terminal.recipe_file import compiled_or_exit
from edge.cli.terminal.store_access import FILE, open_access, read_json, settings_option
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import now_ms
from edge.sfc.net import Net
from edge.store.runs import load
from edge.store.set_mirrors import load_copies

_FILE = click.Path(path_type=Path, dir_okay=False)
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
        stored = await load(at.store, job_id)
        net = compiled_or_exit(json.loads(stored.recipe)) if stored else None
        mirrors = await load_copies(at.store, net.mirrors) if net else {}
    if stored is None or net is None:
        raise Refused("unknown_job", f"no run of job {job_id!r} is stored", "A job has a run once it was started.")
    return net, marks_of(net, stored.run, now_ms(), mirrors=mirrors)


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
        message = f"{output}: cannot be written: {error.strerror}"
        raise Unavailable(message, "Name a file where you may write.") from error
