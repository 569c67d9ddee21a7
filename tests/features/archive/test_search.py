"""Archived jobs are found by each of their identifiers, in pages, the newest first."""

import pytest

from edge.app.features import archived_runs
from edge.config import Settings
from edge.features.archive.database import ArchiveFile
from edge.features.archive.record import EQUIPMENT, PARAMETER, VERDICT, term_of
from edge.features.archive.search import Search, find_jobs, load_archived, newest_runs
from edge.features.archive.settings import ArchiveSettings
from edge.foundation.errors import Refused
from edge.station.stored_job import JobReplay, RecordedRun, recorded_of_documents, replay_recorded
from tests.features.archive import search_limits
from tests.features.archive.archived import end_jobs, ids_in, open_writer
from tests.features.archive.records import record, records
from tests.station.plant import NOW, SCOPE, Plant


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (Search(text="vin00000003"), ["J3"]),
        (Search(text="  VIN0000000"), ["J1", "J2", "J3"]),
        (Search(text="J2"), ["J2"]),
        (Search(text="station-1"), []),
        (Search(text="nothing"), []),
        (Search(terms=(term_of(EQUIPMENT, "Wrench-3"),)), ["J2", "J3"]),
        (Search(terms=(term_of(EQUIPMENT, "wrench-3"), term_of(VERDICT, "not_ok"))), ["J3"]),
        (Search(terms=(term_of(PARAMETER + "vin", "VIN00000001"),)), ["J1"]),
        (Search(terms=(term_of(EQUIPMENT, "wrench-3"),), text="J2"), ["J2"]),
        (Search(since=NOW + 2000), ["J2", "J3"]),
        (Search(until=NOW + 2000), ["J1", "J2"]),
    ],
)
@pytest.mark.parametrize("few", [0, 2000], ids=["common terms", "rare terms"])
def test_job_is_found(
    archive_file: ArchiveFile, search: Search, expected: list[str], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    search_limits.treat_as_few(monkeypatch, few)
    wrench = term_of(EQUIPMENT, "wrench-3")
    archive_file.write([record(1), record(2, wrench), record(3, wrench, verdict="not_ok")], {"s": "1-0"})
    if few == 0 and search.text.strip().casefold() == "vin0000000":
        expected = []  # Only whole identifiers are found where too many begin so.
    assert ids_in(archive_file.file, search) == expected


def test_pages_follow_each_other_without_a_gap(archive_file: ArchiveFile) -> None:
    archive_file.write(records(range(25)), {})
    page = find_jobs(archive_file.file, Search(), 10)
    assert [job.job_order_id for job in page.jobs] == [f"J{number}" for number in range(24, 14, -1)]
    following = find_jobs(archive_file.file, Search(after=page.next), 15)
    assert [job.job_order_id for job in following.jobs] == [f"J{number}" for number in range(14, -1, -1)]
    assert following.next == ""


def test_wrong_position_is_refused(archive_file: ArchiveFile) -> None:
    archive_file.write([], {})
    with pytest.raises(Refused, match="'x' is not a position"):
        find_jobs(archive_file.file, Search(after="x"), 10)


def test_unknown_job_is_refused(archive_file: ArchiveFile) -> None:
    archive_file.write([], {})
    with pytest.raises(Refused, match="the archive has no job 'J9'"):
        load_archived(archive_file.file, "J9")


async def test_newest_runs_of_a_work_master_can_be_replayed(plant: Plant, archive_file: ArchiveFile) -> None:
    """`edge recipes replay` reads them, also of jobs that the store no longer has."""
    await end_jobs(plant, ["J1", "J2", "J3"])
    await (await open_writer(plant, archive_file)).flush()
    folder = str(archive_file.file.parent)
    settings = Settings(sections={"archive": ArchiveSettings(directory=folder)})
    (name,) = {line.work_master for line in find_jobs(archive_file.file, Search(), 9).jobs}
    runs = newest_runs(settings, SCOPE, name, 2)
    assert [run.job_id for run in runs] == ["J3", "J2"]
    recorded = [recorded_of_documents(documents) for run in runs if (documents := run.load())]
    assert [run.stored.run.run_id for run in recorded if isinstance(run, RecordedRun)] == [run.run_id for run in runs]
    replays = [replay_recorded(run) for run in recorded if isinstance(run, RecordedRun)]
    assert all(isinstance(item, JobReplay) and item.is_same for item in replays)
    assert newest_runs(settings, SCOPE, "OTHER", 2) == []
    assert newest_runs(Settings(sections={"archive": ArchiveSettings(directory="/nowhere")}), SCOPE, name, 2) == []
    assert [run.job_id for run in archived_runs(settings, SCOPE, name, 2)] == ["J3", "J2"]
    assert archived_runs(Settings(), SCOPE, name, 2) == []
