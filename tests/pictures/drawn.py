"""The pictures of the documentation, drawn by the product or from the files that it obeys."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from edge.cli import main
from edge.drawing.marks import Marks, marks_of
from edge.drawing.reading import read_chart
from edge.drawing.sheet import draw
from edge.drawing.svg import chart_svg
from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Answer, Start
from tests.pictures.rooms import rooms_svg
from tests.pictures.terminal import terminal_svg

_ROOT = Path(__file__).parents[2]
FOLDER = _ROOT / "docs/images"
_RECIPE = _ROOT / "edge/features/simulator/recipes/rear-axle.json"
_SIMULATION = _ROOT / "docs/reference/simulation.md"


def pictures() -> dict[str, str]:
    """Return each picture as SVG, by the name of its file."""
    net = compile_recipe(json.loads(_RECIPE.read_text(encoding="utf-8")))
    assert isinstance(net, Net)
    return {
        "rear-axle.svg": chart_svg(draw(read_chart(net.recipe), "rear-axle", None)),
        "rear-axle-running.svg": chart_svg(draw(read_chart(net.recipe), "", _marks_in_the_middle(net))),
        "simulate.svg": _simulation(),
        "rooms.svg": rooms_svg(),
    }


def _marks_in_the_middle(net: Net) -> Marks:
    """Return the marks of a job 9 s after its start: the axle is in position, the tool works, the camera is awaited."""
    started = advance(net, new_run("AXLE-0001", "station-1", "1", {}), Start(), 0)
    assert isinstance(started, Advanced)
    positioned = advance(net, started.run, Answer(started.requests[-1].command_id, ok=True), 2500)
    assert isinstance(positioned, Advanced)
    return marks_of(net, positioned.run, 9000)


def _simulation() -> str:
    """Show the example of the page *Simulation* in a terminal."""
    page = _SIMULATION.read_text(encoding="utf-8")
    recipe, script = (part.split("```")[0] for part in page.split("```json\n")[1:3])
    with TemporaryDirectory() as directory:
        files = {"scan.json": recipe, "day.json": script}
        for name, content in files.items():
            Path(directory, name).write_text(content, encoding="utf-8")
        arguments = ["simulate", f"{directory}/scan.json", "--script", f"{directory}/day.json"]
        output = CliRunner().invoke(main, arguments, catch_exceptions=False).output
    return terminal_svg(["$ edge simulate scan.json --script day.json", *output.splitlines()])
