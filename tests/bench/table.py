"""The printed form of rows: those with the same figures form a table, which is folded to the width of the page."""

from collections.abc import Callable, Iterator, Sequence

from tests.bench.measure import Row

_GAP = "  "


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def _latency(name: str) -> Callable[[Row], str]:
    return lambda row: _number(row.latency_ms[name] if row.latency_ms else None)


def _figure(name: str) -> Callable[[Row], str]:
    return lambda row: _number(getattr(row, name))


def _ratio(name: str) -> Callable[[Row], str]:
    """Return the column of a ratio, with its smallest and largest value over the rounds."""

    def read(row: Row) -> str:
        low, high = (row.spread or {}).get(name, (None, None))
        median = _number(getattr(row, name))
        return median if low == high else f"{median} ({_number(low)}-{_number(high)})"

    return read


_COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("x floor", _ratio("floor_ratio")),
    ("CPU x floor", _ratio("cpu_ratio")),
    ("ms/step", _figure("step_ms")),
    ("median ms", _latency("median")),
    ("p95", _latency("p95")),
    ("p99", _latency("p99")),
    ("steps/s", _figure("steps_per_s")),
    ("jobs/s", _figure("jobs_per_s")),
    ("CPU s/1000", _figure("cpu_s_per_1000_steps")),
    ("CPU %", _figure("cpu_percent")),
    ("trips/step", _figure("round_trips_per_step")),
    ("AOF B/step", _figure("aof_bytes_per_step")),
    ("CPU ms/job", _ratio("cpu_ms_per_job")),
    ("trips/job", _ratio("round_trips_per_job")),
    ("AOF B/job", _ratio("aof_bytes_per_job")),
    ("idle CPU %", _ratio("idle_cpu_percent")),
    ("ready s", _ratio("ready_s")),
    ("CPU s", _ratio("cpu_s")),
    ("x alone", _ratio("times_alone")),
    ("alarms in 100 ms", _figure("alarms_in_time")),
    ("samples/s", _figure("samples_per_s")),
    ("recovery s", _figure("recovery_s")),
    ("lists received", _figure("lists_received")),
    ("dropped", _figure("dropped")),
    ("lost", _figure("lost")),
    ("RSS MB", lambda row: _number(row.rss_kb and row.rss_kb // 1024)),
)


def label(row: Row) -> str:
    """Return what distinguishes a row from all others: the scenario and its parameters."""
    parts = [row.scenario]
    if row.steps:
        parts.append(f"{row.steps} steps")
    if row.conc and row.conc > 1:
        parts.append(f"x {row.conc}")
    if row.stored_jobs:
        parts.append(f"+{row.stored_jobs} jobs")
    if row.aof and row.aof != "everysec":
        parts.append(row.aof)
    return " ".join(parts)


def written(rows: Sequence[Row], width: int) -> str:
    """Return the tables of all rows; the columns of each are those that one of its rows has."""
    tables: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        tables.setdefault(tuple(title for title, read in _COLUMNS if read(row)), []).append(row)
    return "\n\n".join("\n".join(_lines(titles, found, width)) for titles, found in tables.items())


def _lines(titles: Sequence[str], rows: Sequence[Row], width: int) -> Iterator[str]:
    read = dict(_COLUMNS)
    labels = _column("", [label(row) for row in rows], left=True)
    line = labels
    for title in titles:
        column = _column(title, [read[title](row) for row in rows])
        if line is not labels and len(line[0]) + len(_GAP) + len(column[0]) > width:
            yield from (*(text.rstrip() for text in line), "")
            line = labels
        line = [f"{before}{_GAP}{text}" for before, text in zip(line, column, strict=True)]
    yield from (text.rstrip() for text in line)


def _column(title: str, cells: Sequence[str], *, left: bool = False) -> list[str]:
    width = max(map(len, (title, *cells)))
    return [cell.ljust(width) if left else cell.rjust(width) for cell in (title, *cells)]
