"""Writes archived jobs as CSV, JSON or JSON Lines, piece by piece."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from edge.features.archive.search import ArchivedJob


class ExportFormat(StrEnum):
    """The form of an export."""

    CSV = "csv"
    JSON = "json"
    JSON_LINES = "jsonl"


MEDIA_TYPES: Final = {
    ExportFormat.CSV: "text/csv",
    ExportFormat.JSON: "application/json",
    ExportFormat.JSON_LINES: "application/jsonl",
}
_FIELDS: Final = (
    "id",
    "job_order_id",
    "vin",
    "scope",
    "work_master",
    "started_at",
    "ended_at",
    "took_ms",
    "outcome",
    "verdict",
    "remark",
    "answers",
)
"""The columns of CSV; `vin` is what was worked on, the identifier of the job."""
_FORMULA: Final = tuple("=+-@\t\r")
"""A cell that begins so is a formula to a spreadsheet: an apostrophe keeps it a text."""
_MOST_COLUMNS: Final = 200


def write_jobs(jobs: Iterable[ArchivedJob], form: ExportFormat, parameters: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield the pieces of an export; in CSV `parameters` of the order are columns of their own."""
    match form:
        case ExportFormat.CSV:
            yield from _csv(jobs, parameters[:_MOST_COLUMNS])
        case ExportFormat.JSON:
            start = b"["
            for job in jobs:
                yield start + b"\n" + msgspec.json.encode(job)
                start = b","
            yield b"[]\n" if start == b"[" else b"\n]\n"
        case ExportFormat.JSON_LINES:
            for job in jobs:
                yield msgspec.json.encode(job) + b"\n"


def _csv(jobs: Iterable[ArchivedJob], parameters: Sequence[str]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    others = [name for name in parameters if name not in _FIELDS]
    writer.writerow((*_FIELDS, *others))
    for job in jobs:
        composed = {"vin": job.identifier, "answers": _answers(job)}
        cells = [composed[name] if name in composed else getattr(job, name) for name in _FIELDS]
        cells += [job.parameters.get(name, "") for name in others]
        writer.writerow([_cell(cell) for cell in cells])
        if buffer.tell() > io.DEFAULT_BUFFER_SIZE:
            yield _read_out(buffer)
    yield _read_out(buffer)


def _answers(job: ArchivedJob) -> str:
    """Return the answers of people: `Is the gap OK? Not OK (anna); Seat the cable (ben)`."""
    return "; ".join(f"{f'{answer.prompt} {answer.answer}'.rstrip()} ({answer.by})" for answer in job.answers)


def _read_out(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
