"""Draws a job and its running chart so that a terminal can show it."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from edge.chart.marks import marks_of
from edge.chart.page import MIN_WIDTH, draw_within
from edge.chart.reading import read_chart
from edge.chart.shapes import Drawing, Frame, Label, LineStyle, ShapeRole
from edge.chart.text import ANSI, chart_text
from edge.cli.jobs.stored_job import StoredJob
from edge.cli.jobs.table import state_text
from edge.cli.jobs.waiting import waiting_text
from edge.cli.terminal.output import printable
from edge.model.job_state import has_ended

_ROWS_AROUND = 2
"""What a terminal shows beside the chart: the line about the job, and the prompt."""


def render_job(stored: StoredJob, now: int, width: int, height: int) -> RenderableType:
    """Draw a job's chart with its run, whole once it has ended; before it starts, say what it waits for."""
    if not (stored.run and stored.net):
        return Text("\n".join(waiting_text(stored, now)))
    marks = marks_of(stored.net, stored.run, now)
    drawing = draw_within(read_chart(stored.net.recipe), "", marks, max(MIN_WIDTH, width))
    rows = drawing.height if has_ended(stored.job.status) else height - _ROWS_AROUND
    head = Text(f"{printable(stored.job.job_id)}: {state_text(stored.job.status)}", style="bold")
    return Group(head, *(Text.from_ansi(row, no_wrap=True) for row in visible_rows(drawing, rows)))


def visible_rows(drawing: Drawing, rows: int) -> Iterator[str]:
    """Give the rows of a chart; of one that is too high those around its active steps, and what it waits for."""
    lines = chart_text(drawing, ANSI)
    if len(lines) <= rows:
        yield from lines
        return
    notes = min(
        (each.y for each in drawing.shapes if isinstance(each, Label) and each.role is ShapeRole.NOTE), default=0
    )
    waiting = lines[notes:][: rows // 2] if notes else []
    room = max(rows - len(waiting), 1)
    active = [each.y for each in drawing.shapes if isinstance(each, Frame) and each.style is LineStyle.ACTIVE]
    first = max(0, min(min(active, default=0) - room // 3, len(lines) - room))
    yield from lines[first : first + room]
    yield from waiting
