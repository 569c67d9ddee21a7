"""Reads the content of one station file: its objects, and all faults in it."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from edge.app.documents import Described, Documents
from edge.app.features import document_kinds, recipe_checks
from edge.config.sections import NAME, NAME_EXPECTED
from edge.features.station_files.documents import StationDocuments
from edge.features.station_files.objects import LIMIT, LISTS, ObjectKind, Objects, ScopeFile, StationObject
from edge.foundation.errors import Refused, SettingsError
from edge.foundation.text import Text, join_texts
from edge.model.isa95 import WorkMaster, read_payload
from edge.model.json_value import read_json_text
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import faults_of_work_master


class FileContent(Struct):
    """The objects of a file so far, and its faults so far."""

    file: str
    objects: dict[StationObject, Described] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, kind: str, scope: str, id: str, content: Any = None) -> None:
        """Add an object; a second one of its identity is a fault."""
        subject = StationObject(kind, scope, id)
        if subject in self.objects:
            self.faults.append(f"{subject}: the file has it twice")
        self.objects[subject] = Described(content, self.file)


def read_content(path: PurePosixPath, text: bytes, documents: StationDocuments) -> FileContent:
    """Return the objects and the faults of a file by its place below the folder."""
    file_content = FileContent(str(path))
    try:
        data = read_json_text(text)
    except Refused as refused:
        file_content.faults.append(refused.message)
        return file_content
    match path.parts:
        case ("scopes", scope, *_) if not re.match(NAME, scope):
            file_content.faults.append(f"the scope {scope!r}: expected {NAME_EXPECTED}")
        case ("scopes", scope, "station.json"):
            _read_scope(file_content, scope, data)
        case ("scopes", scope, "workmasters", *_, _):
            _read_work_masters(file_content, scope, path.stem, data)
        case (folder, *below, _) if folder in (kinds := _kinds_by_folder()):
            _read_documents(file_content, kinds[folder], documents.of(kinds[folder]), data, below)
        case _:
            file_content.faults.append(f"no station file has this place; expected {_expected()}")
    return file_content


def _kinds_by_folder() -> Mapping[str, str]:
    return {kind.folder: name for name, kind in document_kinds().items()}


def _expected() -> str:
    """Return where station files may be."""
    folders = [f"{folder}/" for folder in _kinds_by_folder()]
    places = ["scopes/SCOPE/station.json", "scopes/SCOPE/workmasters/", *folders]
    return " or ".join((", ".join(places[:-1]), places[-1]))


def _read_scope(found: FileContent, scope: str, data: object) -> None:
    if not isinstance(data, dict):
        found.faults.append("expected an object with lists of ids and the limit")
        return
    for name, value in data.items():
        if name != LIMIT and name not in LISTS:
            found.faults.append(f"unknown member {name!r}; expected {LIMIT}, {', '.join(LISTS)}")
            continue
        try:
            msgspec.convert({name: value}, ScopeFile)
        except msgspec.ValidationError as error:
            found.faults.append(f"member {name!r}: {error}")
            continue
        if name == LIMIT:
            found.add(ObjectKind.JOB_ACCEPTANCE, scope, "", value)
        else:
            for item in value:
                found.add(ObjectKind(LISTS[name].value), scope, item)


def _read_work_masters(found: FileContent, scope: str, stem: str, data: object) -> None:
    for item in data if isinstance(data, list) else [data]:
        if not isinstance(item, dict):
            found.faults.append("a Work Master must be an object")
            continue
        # A recipe alone is the Work Master that is named as the file.
        is_recipe = "ID" not in item and bool({"steps", "Steps"} & item.keys())
        given = {"ID": stem, "dataschema": RECIPE_DATASCHEMA, "data": item} if is_recipe else item
        try:
            master = read_payload(given, WorkMaster)
        except msgspec.ValidationError as error:
            found.faults.append(f"Work Master {given.get('ID', '')!r}: {error}")
            continue
        found.faults += map(str, faults_of_work_master(master, recipe_checks()))
        found.add(ObjectKind.WORK_MASTER, scope, master.id, as_values(master))


def _read_documents(found: FileContent, kind: str, documents: Documents, data: object, folders: Sequence[str]) -> None:
    read, faults = documents.read(data, folders)
    found.faults += faults
    found.objects |= {StationObject(kind, "", id): replace(document, file=found.file) for id, document in read.items()}


def as_values(structure: Struct) -> Any:
    """Return a structure as the JSON values that represent it in the store."""
    return msgspec.json.decode(msgspec.json.encode(structure))


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
            problems = [join_texts(": ", (str(self.folder), fault)) for fault in self.faults]
            raise SettingsError(
                problems,
                Text.of("Correct them all, then check again with: edge check station {folder}", folder=self.folder),
            )
        return self.objects


def has_files(folder: Path) -> bool:
    """Return whether a folder holds a station file; an absent folder holds none."""
    return next(_paths(folder, lambda _: None), None) is not None


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


def read_folder(folder: Path, documents: StationDocuments) -> StationFiles:
    """Read all station files of a folder: files that end in `.json`; hidden ones and others are ignored."""
    faults: list[str] = []
    objects: dict[StationObject, Described] = {}
    for path in _paths(folder, faults.append):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        try:
            file_content = read_content(name, _read(path), documents)
        except OSError as error:
            faults.append(f"{name}: cannot be read: {error.strerror}")
            continue
        faults += (f"{name}: {fault}" for fault in file_content.faults)
        faults += _twice(objects, file_content.objects)
        objects |= file_content.objects
    for kind, count in Counter(subject.kind for subject in objects if subject.kind in document_kinds()).items():
        if (most := documents.of(kind).most) is not None and count > most:
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
