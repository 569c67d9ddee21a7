"""Examines the directory of traces: it exists, can be written, and its disk has room for its limit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from edge.app.directory_check import FilledDirectory, find_obstacle, room_in
from edge.app.service_user import may_write
from edge.config import Settings
from edge.features.traces.settings import TracesSettings
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding

SUBJECT = "traces"


async def examine_traces(
    settings: TracesSettings, may_write: Callable[[Path], bool] = may_write
) -> AsyncIterator[HealthFinding]:
    """Examine the directory of `[traces]`, where there is one; it is created with the first trace."""
    if settings.directory:
        yield await asyncio.to_thread(_finding, settings, may_write)


def _finding(settings: TracesSettings, may_write: Callable[[Path], bool]) -> HealthFinding:
    path = Path(settings.directory)
    directory = FilledDirectory(
        SUBJECT, path, settings.max_bytes, Text.of("traces are lost"), Text.of("a full one loses traces")
    )
    if obstacle := find_obstacle(directory, may_write):
        return obstacle
    sizes = list(_sizes(path)) if path.is_dir() else []
    return room_in(directory, path, Text.of("{count} files", count=len(sizes)), sum(sizes))


def _sizes(directory: Path) -> Iterator[int]:
    for file in directory.glob("*/*"):
        # The gateway removes old files meanwhile.
        with suppress(FileNotFoundError):
            yield file.stat().st_size


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examination of the directory."""
    yield SUBJECT, examine_traces(settings.section(TracesSettings))
