"""Tests of the trend on a terminal: its bars, its limits, and the colour of its alarm."""

import io

from rich.console import Console

from edge.features.simulator.telemetry_demo import COLUMNS, AlarmTrend, follow_trend, level_style, trend_panel
from edge.ports.alarm import AckState, ActiveState
from tests.features.simulator.test_telemetry_demo_trend import RAISED, changed


def lines_of(trend: AlarmTrend) -> list[str]:
    console = Console(file=io.StringIO(), width=90, color_system=None, force_terminal=True)
    console.print(trend_panel(trend))
    assert isinstance(console.file, io.StringIO)
    return [line.strip(" │") for line in console.file.getvalue().splitlines() if line.strip()]


def test_empty_trend_shows_its_limits_only() -> None:
    lines = lines_of(AlarmTrend("oven.temperature", 80, 95))
    assert "oven.temperature  –" in lines[0]
    assert lines[1].startswith("95 ┄┄┄")
    assert lines[4].startswith("80 ┄┄┄")
    assert "no alarm" in lines[-1]


def test_values_are_bars_between_the_limits() -> None:
    lines = lines_of(AlarmTrend("t", 80, 95, [60.0, 80.0, 97.5]))
    assert lines[1].startswith("95 ┄┄▄┄")
    assert lines[4].startswith("80 ┄┄█┄")
    assert lines[5].lstrip().startswith("██")


def test_many_values_share_a_column_that_shows_the_highest() -> None:
    values = [60.0] * (2 * COLUMNS)
    values[1] = 100.0
    assert lines_of(AlarmTrend("t", 80, 95, values))[1].startswith("95 █┄")


def test_state_and_severity_of_the_alarm_are_in_the_frame() -> None:
    trend = AlarmTrend("wrench.temperature", 80, 95, [82.0])
    trend.take_change(RAISED, 1_000)
    assert "unacknowledged, severity 500" in lines_of(trend)[-1]
    trend.take_change(changed("cleared", 2_000, active=ActiveState.INACTIVE, acknowledgement=AckState.CONFIRMED), 2_000)
    assert " normal ─" in lines_of(trend)[-1]


def test_style_follows_the_highest_limit() -> None:
    trend = AlarmTrend("t", 80, 95)
    assert [level_style(trend, [value]) for value in (80.0, 80.1, 95.1)] == ["green", "bold yellow", "bold red"]


def test_trend_is_not_drawn_outside_of_a_terminal() -> None:
    console = Console(file=io.StringIO())
    with follow_trend(console, AlarmTrend("t", 80, 95)):
        pass
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""
