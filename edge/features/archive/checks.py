"""Examines the archive: its directory can be written, its disk has room, its file is whole."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from edge.app.directory_check import FilledDirectory, find_obstacle, room_in
from edge.app.service_user import may_write
from edge.config import Settings, password_of
from edge.features.archive.database import ArchiveFault, reading
from edge.features.archive.settings import ArchiveSettings
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding, failing, ok, warning

SUBJECT = "archive"
PLANT = "archive of the plant"


async def examine_archive(
    settings: ArchiveSettings, may_write: Callable[[Path], bool] = may_write
) -> AsyncIterator[HealthFinding]:
    """Examine the file of `[archive]`, where there is one; it is created with the first job."""
    if settings.is_on:
        yield await asyncio.to_thread(_finding, settings, may_write)


def _finding(settings: ArchiveSettings, may_write: Callable[[Path], bool]) -> HealthFinding:
    directory = FilledDirectory(
        SUBJECT,
        Path(settings.directory),
        settings.max_bytes,
        Text.of("results are not archived"),
        Text.of("on a full one results wait in the store"),
    )
    if obstacle := find_obstacle(directory, may_write):
        return obstacle
    damaged = sorted(directory.path.glob("results-damaged-*.sqlite"))
    if damaged:
        advice = Text.of(
            "Save what can be read: sqlite3 {damaged} .recover; then remove the file.", damaged=damaged[-1]
        )
        return warning(SUBJECT, Text.of("a damaged archive was set aside: {damaged}", damaged=damaged[-1]), advice)
    size = settings.file.stat().st_size if settings.file.exists() else 0
    try:
        jobs = _count(settings.file) if size else 0
    except ArchiveFault as fault:
        return failing(SUBJECT, fault.text, "Check the disk; the gateway sets a damaged file aside.")
    return room_in(directory, settings.file, Text.of("{jobs:,} jobs", jobs=jobs), size)


def _count(file: Path) -> int:
    with reading(file) as connection:
        connection.execute("SELECT * FROM job ORDER BY number DESC LIMIT 1").fetchone()
        (count,) = connection.execute("SELECT count(*) FROM job").fetchone()
        return int(count)


async def examine_plant(settings: ArchiveSettings) -> AsyncIterator[HealthFinding]:
    """Examine whether the PostgreSQL of the plant answers, and how many jobs wait for it."""
    if settings.is_on and settings.url:
        yield await asyncio.to_thread(_plant_finding, settings)


def _plant_finding(settings: ArchiveSettings) -> HealthFinding:
    try:
        # The library is an extra of the package.
        from edge.features.archive.plant import PlantUnavailable, count_waiting  # noqa: PLC0415
    except ImportError as error:
        return failing(
            PLANT, Text.of("a library is not installed: {reason}", reason=error), "pip install 'microdcs-edge[archive]'"
        )
    try:
        waiting = count_waiting(settings.file, settings.url, password_of(settings)) if settings.file.exists() else 0
    except (PlantUnavailable, ArchiveFault) as error:
        return warning(PLANT, error.text, error.advice_text)
    return ok(PLANT, Text.of("it answers; {waiting:,} jobs wait to be copied", waiting=waiting))


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of the archive and of its copy in the plant."""
    yield SUBJECT, examine_archive(settings.section(ArchiveSettings))
    yield PLANT, examine_plant(settings.section(ArchiveSettings))
