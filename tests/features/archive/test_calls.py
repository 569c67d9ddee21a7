"""The MES finds archived jobs by a call."""

from typing import Any

import pytest

from edge.features.archive.calls import find
from edge.features.archive.database import ArchiveFile
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from tests.features.archive.records import record, records


def event(data: Any) -> CloudEvent:
    """Return a call."""
    return CloudEvent(id="1", source="/mes", type="results", data=data)


async def test_jobs_are_found_page_by_page(archive_file: ArchiveFile) -> None:
    archive_file.write([*records(range(3)), record(3, verdict="not_ok")], {})
    first = await find(archive_file.file, event({"Most": 3}), "topic")
    assert [job.job_order_id for job in first.jobs] == ["J3", "J2", "J1"]
    second = await find(archive_file.file, event({"After": first.next}), "topic")
    assert ([job.job_order_id for job in second.jobs], second.next) == (["J0"], "")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"Text": "VIN00000002"}, ["J2"]),
        ({"Parameters": {"vin": "vin00000001"}}, ["J1"]),
        ({"Terms": {"verdict": "not_ok"}}, ["J3"]),
        ({"Since": "2035-01-01T00:00:00Z"}, []),
    ],
)
async def test_each_argument_narrows_the_search(
    archive_file: ArchiveFile, data: dict[str, Any], expected: list[str]
) -> None:
    archive_file.write([*records(range(3)), record(3, verdict="not_ok")], {})
    answer = await find(archive_file.file, event(data), "topic")
    assert [job.job_order_id for job in answer.jobs] == expected


@pytest.mark.parametrize("data", [{"Most": 0}, {"Since": "yesterday"}, {"After": "x"}, {"Text": 1}, []])
async def test_wrong_arguments_are_refused(archive_file: ArchiveFile, data: Any) -> None:
    archive_file.write([], {})
    with pytest.raises(Refused):
        await find(archive_file.file, event(data), "topic")
