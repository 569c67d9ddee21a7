"""Formats samples of tags: as a table, as a report, as a line and as data."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.model.instant import rfc3339
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions

if TYPE_CHECKING:
    from edge.features.telemetry.cli.tags.history import Trend


def as_data(sample: Sample, definition: TagDefinition | None = None) -> dict[str, object]:
    """Return a sample as data, with the definition of its tag; its instant in UTC."""
    known = msgspec.to_builtins(definition) if definition else {}
    return {
        "tag": sample.tag,
        "value": sample.value,
        "type": type(sample.value).__name__,
        "quality": sample.quality.value,
        "process": sample.process,
        "at": rfc3339(sample.at),
        **{name: known[name] for name in ("unit", "low", "high", "description") if name in known},
    }


def table(samples: Iterable[Sample], definitions: TagDefinitions | None = None) -> Table:
    """Return samples as a table, with the units of their definitions."""
    found = plain_table("tag", "value", "unit", "quality", "process", "at")
    for sample in samples:
        known = definitions.find(sample.tag) if definitions else None
        unit = known.unit if known else ""
        cells = (sample.tag, sample.value, unit, sample.quality.value, sample.process or "", local_time(sample.at))
        found.add_row(*(Text(printable(cell)) for cell in cells))
    return found


def report(sample: Sample, definition: TagDefinition | None = None) -> Iterator[str]:
    """Yield the report of a sample with the definition of its tag, line by line."""
    facts = as_data(sample, definition) | {"at": local_time(sample.at)}
    width = max(map(len, (name for name, fact in facts.items() if fact is not None)))
    for name, fact in facts.items():
        if fact is not None:
            yield f"{name:<{width}}  {printable(fact)}"


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
