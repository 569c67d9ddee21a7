"""A station whose jobs have ended, a file of an archive, and commands on both."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge.features.archive.database import ArchiveFile, ArchiveLimits
from tests.cli.conftest import edge, settings_file  # noqa: F401 - fixtures
from tests.station.conftest import clock, equipment, plant  # noqa: F401 - fixtures
from tests.station.plant import FakeEquipment, obliging

DAY_MS = 86_400_000
LIMITS = ArchiveLimits(365 * DAY_MS, 1 << 30)


@pytest.fixture
def archive_file(tmp_path: Path) -> Iterator[ArchiveFile]:
    """A file that does not exist yet."""
    with closing(ArchiveFile(tmp_path / "archive" / "results.sqlite", LIMITS)) as file:
        yield file


@pytest.fixture
def tool() -> FakeEquipment:
    """A tool that does at once whatever is asked."""
    fake_equipment = FakeEquipment()
    fake_equipment.replies = obliging
    return fake_equipment
