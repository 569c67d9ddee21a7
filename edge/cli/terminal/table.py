"""Tables that fit the terminal: columns of less interest are left out, then long texts wrap; ids stay whole."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click
from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.foundation.instant import local
from edge.model.instant import utc

_GAP: Final = 2
_WIDE: Final = "edge.wide"
_NEVER_CUT: Final = 100_000
"""Columns of a file or a pipe."""
_LONGEST_WORD: Final = 24
"""A text that wraps gets at least the width of its longest word, up to this."""
_READABLE: Final = 32
"""Columns are left out until a text that wraps has this width."""
_TEXTS: Final = frozenset(
    {"message", "error", "problem", "comment", "reason", "result", "detail", "labels", "client", "changes", "signal"}
)
"""The columns with texts, which may wrap; all others hold ids, states, instants and numbers."""


class ColumnWidth(Struct, frozen=True):
    """The width of a column in characters: in one line, one that reads well, and the least that breaks no word."""

    whole: int
    readable: int
    least: int


def kept_columns(widths: Sequence[ColumnWidth], drop: Sequence[int], room: int) -> tuple[int, ...]:
    """Return the columns that fit into `room` characters; only those of `drop` are left out, in this order."""
    kept = list(range(len(widths)))
    for index in drop:
        if _sum([widths[number].readable for number in kept]) <= room:
            break
        kept.remove(index)
    return tuple(kept)


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * max(0, len(widths) - 1)


class FittedTable(Table):
    """A table without borders; where it is too wide, it leaves out the columns of `drop`, the first one first.

    Without rows it is the sentence `empty`, if there is one.
    """

    def __init__(self, columns: Sequence[str], drop: Sequence[str], empty: str = "") -> None:
        super().__init__(box=None, header_style="bright_black", padding=(0, _GAP, 0, 0), pad_edge=False)
        for column in columns:
            self.add_column(column, overflow="fold")
        self._drop = [columns.index(name) for name in drop]
        self._empty = empty

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table as it fits, and the names of the columns that are left out."""
        if self._empty and not self.rows:
            yield Text(self._empty)
            return
        cells = [[_plain(cell) for cell in column.cells] for column in self.columns]
        names = [_plain(column.header) for column in self.columns]
        widths = [_width(name, texts) for name, texts in zip(names, cells, strict=True)]
        if _sum([width.whole for width in widths]) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        # A column of empty cells says nothing. The first one bears what the rows are about.
        empty = [index for index, texts in enumerate(cells) if index and not any(texts)]
        drop = [*empty, *(index for index in self._drop if index not in empty)]
        kept = kept_columns(widths, drop, options.max_width)
        table = Table(box=None, header_style="bright_black", padding=(0, _GAP, 0, 0), pad_edge=False)
        for index in kept:
            is_text = names[index] in _TEXTS
            least = widths[index].least
            header = Text("\n".join(names[index].split()))
            table.add_column(header, no_wrap=not is_text, overflow="fold", min_width=least)
        for row in zip(*(self.columns[index].cells for index in kept), strict=True):
            table.add_row(*row)
        # Ids that are wider than the terminal are not cut: `print_table` lets the terminal break the line.
        width = max(options.max_width, _sum([widths[index].least for index in kept]))
        for line in Segment.split_lines(console.render(table, options.update(width=width))):
            yield from _without_trailing_blanks(line)
            yield Segment.line()
        if left_out := [name for index, name in enumerate(names) if index not in kept]:
            yield Text(f"not shown: {', '.join(left_out)}; --wide and --json have all", style="bright_black")


def _without_trailing_blanks(line: Iterable[Segment]) -> Iterator[Segment]:
    """Yield the segments of a line up to its last character: beyond the terminal's width blanks would be a line."""
    segments = list(line)
    while segments and not segments[-1].text.rstrip():
        segments.pop()
    for number, segment in enumerate(segments, 1):
        yield Segment(segment.text.rstrip(), segment.style) if number == len(segments) else segment


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _width(name: str, cells: Sequence[str]) -> ColumnWidth:
    """Return the width of a column; its header may break between words."""
    own, header = [cell_len(cell) for cell in cells], max(map(cell_len, name.split()), default=0)
    whole = max([*own, cell_len(name)])
    if name in _TEXTS:
        longest = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        least = min(whole, max(header, min(longest, _LONGEST_WORD)))
        return ColumnWidth(whole, min(whole, max(least, _READABLE)), least)
    least = max([*own, header])
    return ColumnWidth(whole, least, least)


def local_time(milliseconds: int | None) -> str:
    """Return an instant in local time; an empty text for none."""
    return "" if milliseconds is None else f"{local(utc(milliseconds)):%Y-%m-%d %H:%M:%S}"


def plain_table(
    *columns: str,
    drop: Sequence[str] | None = None,
    rows: Iterable[Iterable[object]] = (),
    empty: str = "",
) -> FittedTable:
    """Return a table without borders that fits the terminal, with these rows: printable texts, and Text as it is.

    Where it is too wide it leaves out the columns of `drop`, the first one first; by default all but the first two and
    the last, from the right. Without rows it is the sentence `empty`, if there is one.
    """
    table = FittedTable(columns, columns[-2:1:-1] if drop is None else drop, empty)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table


def _note_wide(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - of click
    context.meta[_WIDE] = value


wide_option = click.option(
    "--wide", is_flag=True, expose_value=False, callback=_note_wide, help="Print all columns, wider than the terminal."
)


def print_table(table: object) -> None:
    """Print a table, or what else rich renders, without cutting what is wider than the terminal."""
    open_console().print(table, crop=False)


def open_console() -> Console:
    """Return a console as wide as the terminal; to a file, a pipe and with `--wide` lines are not folded."""
    console = Console(highlight=False, markup=False, emoji=False)
    context = click.get_current_context(silent=True)
    if console.is_terminal and not (context and context.meta.get(_WIDE)):
        return console
    return Console(width=_NEVER_CUT, highlight=False, markup=False, emoji=False)
