"""Reads the history of tags for commands: exports samples to a file, and summarises the trend of a tag."""

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import click
from msgspec import Struct

from edge.features.telemetry.history.arrow_chunk import CONTEXT, encode_chunk, encode_schema
from edge.foundation.files import replace_atomically, sync
from edge.foundation.instant import local
from edge.model.instant import milliseconds, utc
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_COLUMNS = ("at", "tag", "value", "quality", *CONTEXT)
_CHUNK = 10_000
_BARS = "▁▂▃▄▅▆▇█"


def parse_instant(text: str, now: int) -> int:
    """Return the instant of an ISO 8601 text, or of a time before now such as `90m`. Raises click.UsageError."""
    if match := _AGO.fullmatch(text):
        return now - round(timedelta(**{_UNITS[match[2]]: int(match[1])}).total_seconds() * 1000)
    try:
        return milliseconds(local(datetime.fromisoformat(text)))
    except ValueError:
        raise click.UsageError(
            f"{text!r} is not an instant; use 2026-11-22T08:00 or a time before now: 30s, 90m, 8h, 7d."
        ) from None


def write_samples(samples: Iterable[Sample], form: str, file: Path | None) -> int:
    """Write samples to a file, which appears whole or not at all, or to standard output; return their number."""
    if file is None:
        count = _write(samples, form, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return count
    with replace_atomically(file.absolute(), 0o640) as target:
        count = _write(samples, form, target)
        sync(target)
    return count


def _write(samples: Iterable[Sample], form: str, out: BinaryIO) -> int:
    count = 0
    for written, part in _encoded(samples, form):
        out.write(part)
        count = written
    return count


def _encoded(samples: Iterable[Sample], form: str) -> Iterator[tuple[int, bytes]]:
    """Yield the parts of an export with the number of samples so far."""
    count = 0
    if form == "csv":
        yield 0, _csv_row(_COLUMNS)
    if form == "arrow":
        yield 0, encode_schema()
    chunk: list[Sample] = []
    for count, sample in enumerate(samples, 1):
        match form:
            case "csv":
                cells = (utc(sample.at), sample.tag, sample.value, sample.quality.value)
                yield count, _csv_row((*cells, *(getattr(sample, name) for name in CONTEXT)))
            case "json":
                yield count, f"{encode_line(sample)}\n".encode()
            case _:
                chunk.append(sample)
                if len(chunk) == _CHUNK:
                    yield count, encode_chunk(chunk)
                    chunk = []
    if chunk:
        yield count, encode_chunk(chunk)


def _csv_row(cells: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(["" if cell is None else _cell(cell) for cell in cells])
    return text.getvalue().encode()


def _cell(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat(timespec="milliseconds")
        case bool():
            return str(value).lower()
        # A spreadsheet would calculate such a text.
        case str(text) if text[:1] in {"=", "+", "-", "@", "\t", "\r"}:
            return f"'{text}"
        case _:
            return value


class Trend(Struct, frozen=True):
    """The numbers of a tag in a time: how many, the least, mean and largest, and a bar for each part of the time."""

    count: int
    least: float
    mean: float
    largest: float
    bars: str


def trend_of(samples: Iterable[Sample], start: int, end: int, parts: int = 60) -> Trend | None:
    """Return the trend of the numbers among samples; None without any."""
    sums, counts = [0.0] * parts, [0] * parts
    least, largest = float("inf"), float("-inf")
    for sample in samples:
        if isinstance(sample.value, int | float) and abs(sample.value) < float("inf"):
            part = min(parts - 1, (sample.at - start) * parts // max(1, end - start))
            sums[part] += sample.value
            counts[part] += 1
            least, largest = min(least, sample.value), max(largest, sample.value)
    total = sum(counts)
    if not total:
        return None
    means = [value / count if count else None for value, count in zip(sums, counts, strict=True)]
    known = [mean for mean in means if mean is not None]
    low, width = min(known), max(known) - min(known)
    bars = "".join(" " if mean is None else _BARS[round((mean - low) / width * 7) if width else 3] for mean in means)
    return Trend(total, least, sum(sums) / total, largest, bars)
