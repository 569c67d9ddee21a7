"""Formats samples of tags: as a table, as a report, as a line and as data."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from edge.cli.jobs.table import local_time, plain_table, utc_time
from edge.cli.terminal.output import printable
from edge.rules.sample_lines import Sample

if TYPE_CHECKING:
    from edge.cli.tags.history import Trend


def as_data(sample: Sample) -> dict[str, object]:
    """Return a sample as data; its instant in UTC."""
    return {
        "tag": sample.tag,
        "value": sample.value,
        "type": type(sample.value).__name__,
        "quality": sample.quality.value,
        "process": sample.process,
        "at": utc_time(sample.at),
    }


def table(samples: Iterable[Sample]) -> Table:
    """Return samples as a table."""
    found = plain_table("tag", "value", "quality", "process", "at")
    for each in samples:
        cells = (each.tag, each.value, each.quality.value, each.process or "", local_time(each.at))
        found.add_row(*(Text(printable(cell)) for cell in cells))
    return found


def report(sample: Sample) -> Iterator[str]:
    """Yield the report of a sample, line by line."""
    facts = as_data(sample) | {"at": local_time(sample.at)}
    for name, fact in facts.items():
        if fact is not None:
            yield f"{name:<7}  {printable(fact)}"


def trend_data(trend: "Trend | None") -> dict[str, object]:
    """Return the trend of a tag as data; nothing without one."""
    if trend is None:
        return {}
    return {"trend": {"hours": 24, "count": trend.count, "min": trend.least, "mean": trend.mean, "max": trend.largest}}


def trend_report(trend: "Trend | None") -> Iterator[str]:
    """Yield the trend of a tag, line by line."""
    if trend is not None:
        yield f"24 h     {trend.bars}"
        yield f"         min {trend.least:g}, mean {trend.mean:g}, max {trend.largest:g}, {trend.count} samples"


def line(sample: Sample) -> str:
    """Return a sample in one line."""
    process = f"  [{sample.process}]" if sample.process else ""
    quality = "" if sample.quality.value == "good" else f"  {sample.quality.value}"
    return f"{local_time(sample.at)}  {sample.tag}  {sample.value}{quality}{process}"
