"""Examines a directory that a feature fills up to a limit: the gateway can write it, and its disk has room."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from edge.app.service_user import may_write
from edge.foundation.text import Text
from edge.model.finding import HealthFinding, failing, ok, warning

_MIB: Final = 1 << 20


class FilledDirectory(Struct, frozen=True):
    """A directory of a section, `[SECTION] directory`, whose size has the limit `max_bytes` of the section."""

    section: str
    path: Path
    max_bytes: int
    refused: Text
    """What happens while it cannot be written, such as "traces are lost"."""
    overfull: Text
    """What happens on a full disk."""

    @property
    def present(self) -> Path:
        """Return the directory, else the nearest one above it that exists."""
        return next(parent for parent in (self.path, *self.path.parents) if parent.exists())


def find_obstacle(directory: FilledDirectory, may_write: Callable[[Path], bool] = may_write) -> HealthFinding | None:
    """Return why the gateway cannot write a directory; None when it can, or when it can create it."""
    present = directory.present
    if not present.is_dir():
        return failing(
            directory.section,
            Text.of("{present} is not a directory", present=present),
            Text.of("Remove it, or change [{section}] directory.", section=directory.section),
        )
    if not may_write(present):
        return failing(
            directory.section,
            Text.of("the gateway may not write {present}: {refused}", present=present, refused=directory.refused),
            Text.of(
                "Create it for the service: install -d -o microdcs-edge -m 750 {directory}", directory=directory.path
            ),
        )
    return None


def room_in(directory: FilledDirectory, place: Path, content: Text, used: int) -> HealthFinding:
    """Return whether the disk has room up to the limit; `place` is what is named, `used` the bytes of its content."""
    free = shutil.disk_usage(directory.present).free
    found = Text.of(
        "{content}, {used} of {max_bytes} MiB, {free} MiB free",
        content=content,
        used=used // _MIB,
        max_bytes=directory.max_bytes // _MIB,
        free=free // _MIB,
    )
    if free < max(0, directory.max_bytes - used):
        return warning(
            directory.section,
            Text.of("{found}: less than max_bytes", found=found),
            Text.of(
                "Lower [{section}] max_bytes, or choose a larger disk: {overfull}.",
                section=directory.section,
                overfull=directory.overfull,
            ),
        )
    return ok(directory.section, Text.of("{place}: {found}", place=place, found=found))
