"""Reads a folder of station files: all objects, and all faults with their files."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from msgspec import Struct, field

from edge.features.station_files.content import PlanFaults, read_content
from edge.features.station_files.objects import Described, ObjectKind, Objects, StationObject
from edge.features.telemetry.station_settings import MAX_RULES
from edge.foundation.errors import SettingsError
from edge.ports.tag import MAX_TAGS

Signature = tuple[tuple[str, int, int, int], ...]
"""Names, sizes, instants of change and numbers of all station files: while it stays, their content stays."""


class StationFiles(Struct, frozen=True):
    """The objects of a folder, and its faults; the objects are complete only when there is no fault."""

    folder: Path
    objects: Objects = field(default_factory=lambda: MappingProxyType({}))
    faults: tuple[str, ...] = ()

    def checked(self) -> Objects:
        """Return the objects. Raises SettingsError with all faults."""
        if self.faults:
            problems = [f"{self.folder}: {fault}" for fault in self.faults]
            raise SettingsError(problems, f"Correct them all, then check again with: edge check station {self.folder}")
        return self.objects


def has_files(folder: Path) -> bool:
    """Return whether a folder holds a station file; an absent folder holds none."""
    return next(_paths(folder, lambda _: None), None) is not None


def has_flows(folder: Path) -> bool:
    """Return whether a folder holds a file of a flow."""
    return has_files(folder / "flows")


def signature(folder: Path) -> Signature:
    """Return what changes with the files of a folder."""
    found = []
    for path in _paths(folder, lambda _: None):
        try:
            state = path.stat()
        except OSError:
            found.append((str(path), -1, -1, -1))
        else:
            found.append((str(path), state.st_size, state.st_mtime_ns, state.st_ino))
    return tuple(found)


def read_folder(folder: Path, faults_of_flow: PlanFaults) -> StationFiles:
    """Read all station files of a folder: files that end in `.json`; hidden ones and others are ignored."""
    faults: list[str] = []
    objects: dict[StationObject, Described] = {}
    for path in _paths(folder, faults.append):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        try:
            found = read_content(name, _read(path), faults_of_flow)
        except OSError as error:
            faults.append(f"{name}: cannot be read: {error.strerror}")
            continue
        faults += (f"{name}: {fault}" for fault in found.faults)
        faults += _twice(objects, found.objects)
        objects |= found.objects
    for kind, most in ((ObjectKind.RULE, MAX_RULES), (ObjectKind.TAG, MAX_TAGS)):
        if (count := sum(station_object.kind is kind for station_object in objects)) > most:
            faults.append(f"{kind}s: there are {count} {kind}s; a store takes at most {most}")
    return StationFiles(folder, objects, tuple(faults))


def _twice(known: Mapping[StationObject, Described], found: Mapping[StationObject, Described]) -> Iterator[str]:
    for item in found.keys() & known.keys():
        yield f"{found[item].file}: {item}: {known[item].file} has it, too"


def _read(path: Path) -> bytes:
    if not path.is_file():
        path.stat()  # the reason why it cannot be read, if it is not the kind of file
        raise OSError(0, "it is not a regular file")
    return path.read_bytes()


def _paths(folder: Path, report: Callable[[str], None]) -> Iterator[Path]:
    """Yield the station files in the order of their names; report folders that are not read."""

    def report_error(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            report(f"{os.path.relpath(error.filename, folder)}: cannot be read: {error.strerror}")

    for top, folders, files in os.walk(folder, onerror=report_error):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in [text for text in folders if Path(top, text).is_symlink()]:
            report(f"{Path(top, name).relative_to(folder)}: a link to a folder is not read; link the files")
        for name in sorted(files):
            if name.endswith(".json") and not name.startswith("."):
                yield Path(top, name)
