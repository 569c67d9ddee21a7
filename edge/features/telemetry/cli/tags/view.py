"""Formats samples of tags: as a table, as a report and as a line."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import structs
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.features.telemetry.model.public_tag import public_tag
from edge.ports.sample_lines import Sample
from edge.ports.tag import TagDefinition, TagDefinitions

if TYPE_CHECKING:
    from edge.features.telemetry.cli.tags.history import Trend


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
    facts = structs.asdict(public_tag(sample, definition)) | {"at": local_time(sample.at)}
    width = max(len(name) for name, fact in facts.items() if fact not in {None, ""})
    for name, fact in facts.items():
        if fact not in {None, ""}:
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
