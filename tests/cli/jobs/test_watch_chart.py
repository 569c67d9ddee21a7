"""The chart of a job fits the terminal, with its active steps in sight."""

import itertools
import re

import pytest

from edge.cli.jobs.watch import visible_rows
from edge.drawing.marks import marks_of
from edge.drawing.reading import read_chart
from edge.drawing.shapes import Drawing
from edge.drawing.sheet import draw_within
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import Run, StepState, new_run

STEPS = 30


def drawing(active: int) -> Drawing:
    """Draw a chain of steps of which one is active."""
    names = [f"step{number:02}" for number in range(STEPS)]
    net = compile_recipe(
        {
            "steps": [{"name": name, "initial": name == names[0]} for name in names],
            "transitions": [{"source": a, "target": b, "condition": "go"} for a, b in itertools.pairwise(names)],
        }
    )
    assert isinstance(net, Net)
    new = new_run("J1", "s", "r", {})
    state = {names[active]: StepState(active=True, activated_at=1, count=1)}
    run = Run(new.job_id, new.scope, new.run_id, {}, started_at=1, steps=state, active=frozenset(state))
    return draw_within(read_chart(net.recipe), "", marks_of(net, run, 2), 80)


def rows_of(drawn: Drawing, rows: int) -> list[str]:
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in visible_rows(drawn, rows)]


@pytest.mark.parametrize("active", [0, 1, 15, STEPS - 2])
def test_tall_chart_shows_its_active_step_and_its_wait_reason(active: int) -> None:
    rows = rows_of(drawing(active), 24)
    assert len(rows) == 24
    assert any(f"step{active:02}" in row for row in rows[:18])
    assert any("waits for" in row for row in rows)


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_chart_is_cut_to_the_smallest_terminal(rows: int) -> None:
    assert len(rows_of(drawing(15), rows)) <= max(rows, 1)


def test_chart_that_fits_is_shown_completely() -> None:
    whole = rows_of(drawing(3), 1000)
    assert [row for row in whole if "step00" in row]
    assert [row for row in whole if f"step{STEPS - 1}" in row]
