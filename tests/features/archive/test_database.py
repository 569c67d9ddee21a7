"""The file holds each job once, keeps to its limits, and loses no transaction."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.features.archive.database import ArchiveFault, ArchiveFile, ArchiveLimits, copy_to, reading, set_aside
from edge.features.archive.search import Search
from tests.features.archive.archived import ids_in
from tests.features.archive.records import record, records
from tests.station.plant import NOW


def test_jobs_and_cursor_are_written_together_or_not(archive_file: ArchiveFile) -> None:
    archive_file.write(records([1]), {"s": "1-0"})
    broken = replace(record(3), ended_at=None)
    with pytest.raises(ArchiveFault):
        archive_file.write([record(2), broken], {"s": "2-0"})
    assert ids_in(archive_file.file) == ["J1"]
    assert archive_file.cursor("s") == "1-0"


def test_job_that_is_written_again_is_there_once(archive_file: ArchiveFile) -> None:
    archive_file.write(records([1]), {})
    archive_file.write(records([1]), {})
    archive_file.write([replace(record(1), revision=2, job_id="J2")], {})
    assert ids_in(archive_file.file) == ["J2"]


def test_too_old_jobs_are_removed_with_their_terms_and_recipes(tmp_path: Path) -> None:
    file = ArchiveFile(tmp_path / "results.sqlite", ArchiveLimits(100_000, 1 << 30))
    file.write([record(1, work_master="old"), *records(range(2, 200))], {})
    with reading(file.file) as connection:
        assert connection.execute("SELECT count(*) FROM recipe").fetchone() == (2,)
    file.write(records(range(2000, 3200)), {})
    assert file.trim(NOW + 3_200_000) == 1299
    assert len(ids_in(file.file)) == 100
    assert ids_in(file.file, Search(text="VIN00000150")) == []
    with reading(file.file) as connection:
        assert connection.execute("SELECT text FROM recipe").fetchall() == [("recipe axle",)]
        assert connection.execute("SELECT count(*) FROM document").fetchone() == (100,)
    file.close()


def test_file_keeps_to_its_size(tmp_path: Path) -> None:
    file = ArchiveFile(tmp_path / "results.sqlite", ArchiveLimits(1 << 40, 1 << 18))
    for start in range(0, 2000, 100):
        file.write(records(range(start, start + 100)), {})
        file.trim(NOW)
    file.close()
    assert file.file.stat().st_size < (1 << 18) * 1.3
    ids = ids_in(file.file)
    assert "J1999" in ids
    assert "J0" not in ids


def test_file_of_a_later_release_is_refused_and_stays(archive_file: ArchiveFile) -> None:
    archive_file.write([], {})
    archive_file.close()
    with closing(sqlite3.connect(archive_file.file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ArchiveFault, match="version 99") as fault:
        archive_file.write([], {})
    assert not fault.value.is_damaged


def test_copy_holds_what_was_written(archive_file: ArchiveFile, tmp_path: Path) -> None:
    archive_file.write(records([1, 2]), {})
    copy_to(archive_file.file, tmp_path / "copy.sqlite")
    assert ids_in(tmp_path / "copy.sqlite") == ["J1", "J2"]


def test_archive_without_a_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ArchiveFault, match="it has no file yet"):
        ids_in(tmp_path / "results.sqlite")


def test_only_a_damaged_file_is_set_aside(archive_file: ArchiveFile) -> None:
    archive_file.write(records([1]), {})
    assert set_aside(archive_file.file, 17) is None
    archive_file.close()
    archive_file.file.write_bytes(b"no database" * 1000)
    aside = set_aside(archive_file.file, 17)
    assert aside is not None
    assert aside.name == "results-damaged-17.sqlite"
    assert set_aside(archive_file.file, 18) is None
