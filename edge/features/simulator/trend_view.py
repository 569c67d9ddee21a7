"""Draws the trend of a tag with its limits for a terminal: one column for each group of samples."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from edge.features.simulator.alarm_trend import AlarmTrend

COLUMNS: Final = 60
ROWS: Final = 8
_FRAMES_PER_SECOND: Final = 15
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_LEAST: Final = 60.0
_MOST: Final = 100.0


@contextmanager
def follow_trend(console: Console, trend: AlarmTrend) -> Iterator[None]:
    """Draw the trend continuously on a terminal; the last frame stays on the screen. Elsewhere draw nothing."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    with Live(get_renderable=lambda: trend_panel(trend), console=console, refresh_per_second=_FRAMES_PER_SECOND):
        yield


def trend_panel(trend: AlarmTrend) -> Padding:
    """Return the trend in a frame of the colour of its alarm."""
    alarm = trend.alarm
    style, state = "bright_black", "no alarm"
    if alarm:
        style = "green" if not alarm.active else "red" if alarm.severity >= trend_severity(trend) else "yellow"
        state = f"{alarm.state}, severity {alarm.severity}" if alarm.active else alarm.state
    shown = f"{trend.values[-1]:.1f} °C" if trend.values else "–"
    title = Text.assemble((trend.tag, "bold"), "  ", (shown, level_style(trend, trend.values[-1:] or [0.0])))
    panel = Panel(
        Text("\n").join(_rows(trend)),
        title=title,
        title_align="left",
        subtitle=Text(state, style=style),
        subtitle_align="right",
        border_style=style,
        expand=False,
        padding=(0, 1),
    )
    return Padding(panel, (1, 0, 1, 2))


def trend_severity(trend: AlarmTrend) -> int:
    """Return the severity from which the alarm of a trend is shown as critical."""
    return max(each.notice.severity for each in trend.changes)


def level_style(trend: AlarmTrend, values: Sequence[float]) -> str:
    """Return the style of values: by the highest limit that one of them is above."""
    top = max(values)
    return "bold red" if top > trend.high_high else "bold yellow" if top > trend.high else "green"


def _rows(trend: AlarmTrend) -> Iterator[Text]:
    """Yield the lines of the chart, the highest first; limits are dotted lines behind the values."""
    columns = _columns(trend.values)
    step = (_MOST - _LEAST) / ROWS
    limits = {
        _row_of(trend.high_high, step): ("red", f"{trend.high_high:g}"),
        _row_of(trend.high, step): ("yellow", f"{trend.high:g}"),
    }
    for row in reversed(range(ROWS)):
        bottom = _LEAST + row * step
        colour, label = limits.get(row, ("bright_black", ""))
        line = Text(f"{label:>4} ", style=colour)
        for column in range(COLUMNS):
            part = columns[column] if column < len(columns) else []
            filled = (max(part) - bottom) / step if part else 0.0
            block = _BLOCKS[max(0, min(8, round(filled * 8)))]
            if block == " ":
                line.append("┄" if label else " ", style=colour)
            else:
                line.append(block, style=level_style(trend, part))
        yield line


def _row_of(limit: float, step: float) -> int:
    return int((limit - _LEAST) / step)


def _columns(values: Sequence[float]) -> list[Sequence[float]]:
    """Return the values in groups that fit the width."""
    size = max(1, -(-len(values) // COLUMNS))
    return [values[start : start + size] for start in range(0, len(values), size)]
