"""The archive is off unless it has a directory."""

from edge.config import Settings
from edge.features.archive.settings import ArchiveSettings


def test_archive_is_off_without_a_directory() -> None:
    assert not ArchiveSettings().is_on
    assert ArchiveSettings(directory="/var/lib/archive").is_on


def test_relative_directory_is_a_conflict() -> None:
    assert list(map(str, ArchiveSettings(directory="archive").conflicts(Settings()))) == [
        "directory: expected an absolute path, got 'archive'"
    ]
    assert list(ArchiveSettings(directory="/var/lib/archive").conflicts(Settings())) == []
