"""A table is never wider than the terminal, and no id or state in it is broken, whatever it holds."""

import io

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from edge.cli.terminal.table import ColumnWidth, FittedTable, kept_columns, open_console, plain_table, wide_option

IDS = st.text("abcdefgh-_0123456789", min_size=1, max_size=24)
WORDS = st.lists(st.text("abcdefghij", min_size=1, max_size=20), max_size=20).map(" ".join)


def printed(table: FittedTable, width: int) -> list[str]:
    """Return the lines that a terminal of a width shows."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, markup=False, highlight=False)
    console.print(table, crop=False)
    return out.getvalue().splitlines()


def alarms(
    rows: int = 1, message: str = "wrench: it has not confirmed a stop, the tool may still be active"
) -> FittedTable:
    table = FittedTable(("alarm", "severity", "state", "raised", "message"), ("severity", "raised"))
    for number in range(rows):
        cells = (f"2a54dfe{number}", "800", "unacknowledged", "2026-11-26 13:21:51", message)
        table.add_row(*(Text(cell) for cell in cells))
    return table


def test_wide_terminal_shows_each_row_in_one_line() -> None:
    lines = printed(alarms(2), 200)
    assert lines[0].split() == ["alarm", "severity", "state", "raised", "message"]
    assert len(lines) == 3
    assert "may still be active" in lines[2]


def test_column_is_left_out_before_a_text_wraps_to_a_few_characters() -> None:
    """Before, the message had ten characters of width, and a row seven lines."""
    lines = printed(alarms(), 80)
    assert all(len(line) <= 80 for line in lines)
    assert "not shown: severity; " in lines[-1]
    assert len(lines) <= 5


def test_text_of_32_characters_wraps_before_a_column_is_left_out() -> None:
    lines = printed(alarms(), 98)
    assert "2026-11-26 13:21:51" in lines[1]
    assert not any("not shown" in line for line in lines)


def test_column_of_empty_cells_is_left_out_first() -> None:
    table = FittedTable(("id", "place", "state", "reason"), ("state",))
    table.add_row("a" * 12, "", "b" * 12, "c" * 12)
    lines = printed(table, 44)
    assert lines[1].split() == ["a" * 12, "b" * 12, "c" * 12]
    assert lines[-1] == "not shown: place; --wide and --json have all"


def test_id_that_is_wider_than_the_terminal_is_not_cut() -> None:
    """Before, the end of the id and what followed were missing."""
    table = FittedTable(("node", "link"), ())
    table.add_row("/run/redis-microdcs/line-of-the-plant/redis.sock", "up")
    assert printed(table, 30)[1] == "/run/redis-microdcs/line-of-the-plant/redis.sock  up"


def test_columns_that_do_not_fit_are_left_out_by_name() -> None:
    lines = printed(alarms(), 50)
    assert all(len(line.rstrip()) <= 50 for line in lines)
    assert any("unacknowledged" in line for line in lines)
    assert " ".join(lines[-2:]).startswith("not shown: severity, raised; --wide")


def test_header_of_two_words_breaks_between_them() -> None:
    table = FittedTable(("name", "open commands", "problem"), ())
    table.add_row("wrench", "0", "not connected: refused: cannot connect to 127.0.0.1:38890")
    lines = printed(table, 40)
    assert [line.split() for line in lines[:2]] == [["open"], ["name", "commands", "problem"]]


@pytest.mark.parametrize(
    ("room", "kept"), [(100, (0, 1, 2)), (32, (0, 1, 2)), (31, (0, 2)), (21, (0, 2)), (20, (2,)), (1, (2,))]
)
def test_columns_are_dropped_in_their_order(room: int, kept: tuple[int, ...]) -> None:
    widths = [ColumnWidth(20, 9, 5), ColumnWidth(9, 9, 9), ColumnWidth(30, 10, 5)]
    assert kept_columns(widths, (1, 0), room) == kept


@given(st.lists(st.tuples(IDS, IDS, IDS, WORDS), min_size=1, max_size=5), st.integers(60, 160))
def test_no_id_is_broken_and_no_line_too_long(rows: list[tuple[str, str, str, str]], width: int) -> None:
    table = FittedTable(("id", "state", "scope", "message"), ("scope",))
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    lines = printed(table, width)
    needed = max(len(row[0]) for row in rows) + max(len(row[1]) for row in rows) + 2 + 2 + 20
    if needed <= width:
        assert all(len(line.rstrip()) <= width for line in lines)
    for identifier, state, *_ in rows:
        assert any(line.startswith(f"{identifier} ") or line == identifier for line in lines)
        assert any(f" {state}" in line for line in lines)


def test_list_without_rows_is_a_sentence() -> None:
    assert printed(plain_table("alarm", "message", empty="no alarms"), 40) == ["no alarms"]


@pytest.mark.parametrize(("arguments", "cells"), [([], 2), (["--wide"], 3)])
def test_wide_prints_all_columns_in_a_narrow_terminal(
    arguments: list[str], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable makes the standard output of the runner a terminal for rich."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")

    @click.command()
    @wide_option
    def listed() -> None:
        open_console().print(
            plain_table("id", "state", "place", rows=[("a" * 20, "b" * 15, "c" * 20)], drop=("state",))
        )

    lines = click.unstyle(CliRunner().invoke(listed, arguments).output).splitlines()
    assert len(lines[1].split()) == cells
    assert ("not shown: state" in " ".join(lines)) is (cells == 2)
