"""The archive is examined by `edge doctor`."""

from contextlib import closing
from pathlib import Path

from edge.features.archive.checks import examine_archive
from edge.features.archive.database import ArchiveFile
from edge.features.archive.settings import ArchiveSettings
from edge.model.finding import Level, PublicHealthFinding, public_form
from tests.features.archive.conftest import LIMITS
from tests.features.archive.records import records


async def findings(**settings: object) -> list[PublicHealthFinding]:
    """Examine an archive with these settings."""
    return [public_form(finding) async for finding in examine_archive(ArchiveSettings(**settings))]  # type: ignore[arg-type]


async def test_gateway_without_archive_has_no_finding() -> None:
    assert await findings() == []


async def test_jobs_of_the_archive_are_counted(tmp_path: Path) -> None:
    with closing(ArchiveFile(tmp_path / "results.sqlite", LIMITS)) as file:
        file.write(records(range(3)), {})
    (finding,) = await findings(directory=str(tmp_path), max_bytes=2 << 20)
    assert (finding.level, "3 jobs" in finding.found) == (Level.OK, True)


async def test_missing_directory_is_created_later(tmp_path: Path) -> None:
    (finding,) = await findings(directory=str(tmp_path / "a" / "b"), max_bytes=2 << 20)
    assert finding.level is Level.OK


async def test_file_in_place_of_the_directory_fails(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("")
    (finding,) = await findings(directory=str(tmp_path / "archive"))
    assert (finding.level, "is not a directory" in finding.found) == (Level.FAILING, True)


async def test_unwritable_directory_fails(tmp_path: Path) -> None:
    settings = ArchiveSettings(directory=str(tmp_path))
    (finding,) = [public_form(finding) async for finding in examine_archive(settings, may_write=lambda _: False)]
    assert (finding.level, "are not archived" in finding.found) == (Level.FAILING, True)


async def test_damaged_file_fails(tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").write_bytes(b"no database" * 1000)
    (finding,) = await findings(directory=str(tmp_path))
    assert (finding.level, "file is not a database" in finding.found) == (Level.FAILING, True)


async def test_damaged_file_that_was_set_aside_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "results-damaged-17.sqlite").write_bytes(b"")
    (finding,) = await findings(directory=str(tmp_path))
    assert (finding.level, "results-damaged-17.sqlite" in finding.found) == (Level.WARNING, True)


async def test_disk_with_less_space_than_the_limit_is_a_warning(tmp_path: Path) -> None:
    (finding,) = await findings(directory=str(tmp_path), max_bytes=1 << 44)
    assert (finding.level, "less than max_bytes" in finding.found) == (Level.WARNING, True)
