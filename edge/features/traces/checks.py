"""Examines the directory of traces: it exists, can be written, and its disk has room for its limit."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from edge.app.service_user import may_write
from edge.config import Settings
from edge.features.traces.settings import TracesSettings
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding, failing, ok, warning

SUBJECT = "traces"
_MIB = 1 << 20


async def examine_traces(
    settings: TracesSettings, may_write: Callable[[Path], bool] = may_write
) -> AsyncIterator[HealthFinding]:
    """Examine the directory of `[traces]`, where there is one; it is created with the first trace."""
    if settings.directory:
        yield await asyncio.to_thread(_finding, settings, may_write)


def _finding(settings: TracesSettings, may_write: Callable[[Path], bool]) -> HealthFinding:
    directory = Path(settings.directory)
    present = next(parent for parent in (directory, *directory.parents) if parent.exists())
    if not present.is_dir():
        return failing(
            SUBJECT,
            Text.of("{present} is not a directory", present=present),
            "Remove it, or change [traces] directory.",
        )
    if not may_write(present):
        advice = Text.of(
            "Create it for the service: install -d -o microdcs-edge -m 750 {directory}", directory=directory
        )
        return failing(
            SUBJECT, Text.of("the gateway may not write {present}: traces are lost", present=present), advice
        )
    sizes = list(_sizes(directory)) if directory.is_dir() else []
    free, wanted = shutil.disk_usage(present).free, max(0, settings.max_bytes - sum(sizes))
    found = Text.of(
        "{count} files, {used} of {max_bytes} MiB, {free} MiB free",
        count=len(sizes),
        used=sum(sizes) // _MIB,
        max_bytes=settings.max_bytes // _MIB,
        free=free // _MIB,
    )
    if free < wanted:
        return warning(
            SUBJECT,
            Text.of("{found}: less than max_bytes", found=found),
            "Lower [traces] max_bytes, or choose a larger disk: a full one loses traces.",
        )
    return ok(SUBJECT, Text.of("{directory}: {found}", directory=directory, found=found))


def _sizes(directory: Path) -> Iterator[int]:
    for file in directory.glob("*/*"):
        # The gateway removes old files meanwhile.
        with suppress(FileNotFoundError):
            yield file.stat().st_size


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examination of the directory."""
    yield SUBJECT, examine_traces(settings.section(TracesSettings))
