"""`edge draw` draws a recipe or a running job as a chart."""

import asyncio
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edge.cli import main
from edge.config import RedisSettings
from edge.drawing.marks import SYMBOLS
from edge.sfc.advance import advance
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.sfc.signal import Advanced, Answer, Start
from edge.store import runs
from edge.store.commit import Committed
from edge.store.open_store import open_store

RECIPE: dict[str, Any] = {
    "steps": [{"name": "Init", "initial": True}, {"name": "Tighten"}, {"name": "End"}],
    "transitions": [
        {"source": "Init", "target": "Tighten", "condition": "always"},
        {"source": "Tighten", "target": "End", "condition": "torque_ok"},
    ],
    "actions": [
        {
            "name": name,
            "step": step,
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": f"com.example.{name}.v1",
            "timeout_seconds": 30,
        }
        for name, step in (("clamp", "Init"), ("tighten", "Tighten"))
    ],
}


def draw(*arguments: str | Path) -> Result:
    """Call `edge draw`."""
    return CliRunner().invoke(main, ["draw", *map(str, arguments)])


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "rear-axle.json"
    file.write_text(json.dumps(RECIPE))
    return file


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings with a store of their own in which job J1 tightens for the second time."""
    file = tmp_path / "edge.toml"
    file.write_text(f'[redis]\nurl = "embedded:{tmp_path}/store"\n')
    asyncio.run(start_a_job(RedisSettings(url=f"embedded:{tmp_path}/store")))
    return file


async def start_a_job(redis: RedisSettings) -> None:
    net = compile_recipe(RECIPE)
    assert isinstance(net, Net)
    started = advance(net, new_run("J1", "line-4", "1", {}), Start(), 1_000)
    assert isinstance(started, Advanced)
    clamped = advance(net, started.run, Answer(started.requests[0].command_id, ok=True), 3_000)
    assert isinstance(clamped, Advanced)
    async with open_store(redis, "test") as store:
        assert isinstance(
            await store.commit(runs.create(store.keys, runs.StoredRun(clamped.run, 1, net.source), "test")), Committed
        )


def test_a_recipe_is_drawn_in_unicode(recipe: Path) -> None:
    answer = draw(recipe)
    assert answer.exit_code == 0
    assert answer.output.startswith("rear-axle\n")
    assert "║  Init   ╟──┤ N │ clamp" in answer.output
    assert "\x1b" not in answer.output


def test_no_line_is_longer_than_the_requested_width(recipe: Path) -> None:
    answer = draw(recipe, "--width", "60")
    assert max(map(len, answer.output.splitlines())) <= 60


def test_too_small_width_is_refused(recipe: Path) -> None:
    assert draw(recipe, "--width", "10").exit_code == 2


def test_file_with_svg_suffix_is_written_as_svg(recipe: Path, tmp_path: Path) -> None:
    answer = draw(recipe, "-o", tmp_path / "chart.svg")
    assert (answer.exit_code, answer.output) == (0, "")
    root = ET.parse(tmp_path / "chart.svg").getroot()  # noqa: S314  our own document
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_file_with_other_suffix_is_written_as_text(recipe: Path, tmp_path: Path) -> None:
    assert draw(recipe, "-o", tmp_path / "chart.txt", "--width", "80").exit_code == 0
    assert "║  Init   ╟──┤ N │ clamp" in (tmp_path / "chart.txt").read_text()


def test_a_file_that_cannot_be_written_is_reported(recipe: Path, tmp_path: Path) -> None:
    answer = draw(recipe, "-o", tmp_path / "none" / "chart.svg")
    assert answer.exit_code == 1
    assert "cannot be written" in answer.stderr


def test_a_refused_recipe_reports_all_its_faults(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(RECIPE | {"steps": RECIPE["steps"][:1]}))
    answer = draw(file)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "unknown target 'Tighten'" in answer.stderr
    assert "unknown target 'End'" in answer.stderr


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_file_that_is_not_a_recipe_is_reported(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    answer = draw(file)
    assert answer.exit_code == 2
    assert answer.stderr


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    answer = draw(tmp_path / "none.json")
    assert answer.exit_code == 2
    assert "none.json: cannot be read" in answer.stderr


def test_draw_requires_either_recipe_or_job(recipe: Path) -> None:
    assert draw().exit_code == 2
    assert draw(recipe, "--job", "J1").exit_code == 2


def test_job_is_drawn_with_its_current_state(settings: Path) -> None:
    answer = draw("--job", "J1", "--settings", settings, "--width", "120")
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("job J1 in line-4: running after ")
    for printed in ("✓ completed", "▶ dispatched", "● ", "waiting:", "torque_ok"):
        assert printed in answer.output


def test_a_job_can_be_drawn_as_a_picture(settings: Path, tmp_path: Path) -> None:
    assert draw("--job", "J1", "--settings", settings, "-o", tmp_path / "job.svg").exit_code == 0
    assert 'class="step active"' in (tmp_path / "job.svg").read_text()


def test_a_job_without_a_run_is_reported(settings: Path) -> None:
    answer = draw("--job", "J2", "--settings", settings)
    assert answer.exit_code == 1
    assert "no run of job 'J2'" in answer.stderr


def test_invalid_settings_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text("[redis]\nulr = 3\n")
    answer = draw("--job", "J1", "--settings", file)
    assert answer.exit_code == 2
    assert "redis.ulr" in answer.stderr


def test_page_shows_the_drawn_chart_and_every_state() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs/how-to/draw-a-recipe.md").read_text()
    assert draw(root / "edge/features/simulator/recipes/rear-axle.json", "--width", "100").output in page
    assert all(f"`{symbol} {state.replace('_', ' ')}`" in page for state, symbol in SYMBOLS.items())


def test_help_has_an_example() -> None:
    assert "Example: edge draw " in draw("--help").output


def test_recipe_is_read_from_standard_input() -> None:
    answer = CliRunner().invoke(main, ["draw", "-"], input='{"steps": [{"name": "Only", "initial": true}]}')
    assert answer.exit_code == 0
    assert "║  Only   ║" in answer.stdout
    assert "-\n" not in answer.stdout


def test_store_in_the_memory_of_the_gateway_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "edge.toml"
    file.write_text('[redis]\nurl = "embedded:"\n')
    answer = draw("--job", "J1", "--settings", file)
    assert answer.exit_code == 2
    assert "lives and dies with one process" in answer.stderr
