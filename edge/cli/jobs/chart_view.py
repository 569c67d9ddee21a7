"""Renders a job and its running chart for a terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from edge.chart.marks import marks_of
from edge.chart.page import MIN_WIDTH, draw_within
from edge.chart.reading import read_chart
from edge.chart.shapes import Drawing, Frame, Label, LineStyle, ShapeRole
from edge.chart.text import ANSI, chart_text
from edge.cli.jobs.table import state_text
from edge.cli.jobs.waiting import waiting_text
from edge.cli.terminal.output import printable
from edge.model.job_state import has_ended
from edge.station.stored_job import StoredJob

_ROWS_AROUND = 2
"""Terminal rows that the chart cannot use: the line of the job, and the prompt."""


def render_job(stored: StoredJob, now: int, width: int, height: int) -> RenderableType:
    """Render the chart of a job with its run, whole after its end; before its start, what the job waits for."""
    if not (stored.run and stored.net):
        return Text("\n".join(waiting_text(stored, now)))
    marks = marks_of(stored.net, stored.run, now, stored.holders, stored.mirrors, stored.unsent)
    drawing = draw_within(read_chart(stored.net.recipe), "", marks, max(MIN_WIDTH, width))
    rows = drawing.height if has_ended(stored.job.status) else height - _ROWS_AROUND
    head = Text(f"{printable(stored.job.job_id)}: {state_text(stored.job.status)}", style="bold")
    return Group(head, *(Text.from_ansi(row, no_wrap=True) for row in visible_rows(drawing, rows)))


def visible_rows(drawing: Drawing, rows: int) -> Iterator[str]:
    """Yield the rows of a chart; of a high chart those around the active steps, and what the job waits for."""
    lines = chart_text(drawing, ANSI)
    if len(lines) <= rows:
        yield from lines
        return
    notes = min(
        (shape.y for shape in drawing.shapes if isinstance(shape, Label) and shape.role is ShapeRole.NOTE), default=0
    )
    waiting = lines[notes:][: rows // 2] if notes else []
    room = max(rows - len(waiting), 1)
    active = [shape.y for shape in drawing.shapes if isinstance(shape, Frame) and shape.style is LineStyle.ACTIVE]
    first = max(0, min(min(active, default=0) - room // 3, len(lines) - room))
    yield from lines[first : first + room]
    yield from waiting
