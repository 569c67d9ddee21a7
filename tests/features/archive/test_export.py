"""An export holds every job once, in each form."""

import csv
import io

import msgspec
import pytest

from edge.features.archive.answers import PromptAnswer
from edge.features.archive.database import ArchiveFile
from edge.features.archive.export import ExportFormat, write_jobs
from edge.features.archive.search import Search, all_jobs
from tests.features.archive.archived import jobs_in
from tests.features.archive.records import record, records


@pytest.mark.parametrize("form", ExportFormat)
def test_export_holds_every_job_once(archive_file: ArchiveFile, form: ExportFormat) -> None:
    archive_file.write(records(range(1203)), {})
    content = b"".join(write_jobs(all_jobs(archive_file.file, Search()), form, ["vin"]))
    assert _ids(content, form) == [f"response-{number}" for number in range(1202, -1, -1)]


def _ids(content: bytes, form: ExportFormat) -> list[str]:
    match form:
        case ExportFormat.CSV:
            rows = list(csv.DictReader(io.StringIO(content.decode())))
            assert rows[0]["vin"] == "VIN00001202"
            return [row["id"] for row in rows]
        case ExportFormat.JSON:
            return [job["id"] for job in msgspec.json.decode(content)]
        case ExportFormat.JSON_LINES:
            return [msgspec.json.decode(line)["id"] for line in content.splitlines()]


def test_csv_names_what_was_worked_on_and_who_answered(archive_file: ArchiveFile) -> None:
    answers = (PromptAnswer("Gap?", {"en": "Not OK", "de": "Nicht OK"}, "anna"), PromptAnswer("Seated", None, "ben"))
    archive_file.write([record(1, assets=("WVW1",), answers=answers), record(2)], {})
    jobs = all_jobs(archive_file.file, Search(), language="de")
    content = b"".join(write_jobs(jobs, ExportFormat.CSV, ["vin", "colour"])).decode()
    other, first = csv.DictReader(io.StringIO(content))
    assert content.splitlines()[0].split(",")[:3] == ["id", "job_order_id", "vin"]
    assert content.splitlines()[0].count("vin") == 1
    assert (first["vin"], first["answers"]) == ("WVW1", "Gap? Nicht OK (anna); Seated (ben)")
    assert (other["vin"], other["answers"]) == ("VIN00000002", "")


def test_export_of_nothing_is_an_empty_list() -> None:
    assert b"".join(write_jobs([], ExportFormat.JSON)) == b"[]\n"


def test_cell_that_a_spreadsheet_would_compute_stays_a_text(archive_file: ArchiveFile) -> None:
    archive_file.write([msgspec.structs.replace(record(1), remark="=HYPERLINK(1)")], {})
    content = b"".join(write_jobs(jobs_in(archive_file.file), ExportFormat.CSV))
    assert b"'=HYPERLINK(1)" in content
