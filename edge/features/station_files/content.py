"""Reads the content of one station file: its objects, and all faults in it."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field

from edge.config.sections import NAME, NAME_EXPECTED
from edge.features.station_files.objects import LIMIT, LISTS, Described, ObjectKind, Objects, ScopeFile, StationObject
from edge.features.telemetry.definitions import MAX_RULES
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.foundation.errors import Refused, SettingsError
from edge.model.isa95 import WorkMaster, read_payload
from edge.model.json_value import read_json_text
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.ports.tag import MAX_TAGS, parse_definitions
from edge.station.settings import MAX_ITEM_BYTES, faults_of_work_master

PlanFaults: TypeAlias = Callable[[object], Sequence[str]]
"""Returns all faults of a flow document."""

EXPECTED: Final = "scopes/SCOPE/station.json, scopes/SCOPE/workmasters/, tags/, rules/ or flows/"


class FileContent(Struct):
    """The objects of a file so far, and its faults so far."""

    file: str
    objects: dict[StationObject, Described] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, kind: ObjectKind, scope: str, id: str, content: Any = None, *, runs: bool = False) -> None:
        """Add an object; a second one of its identity is a fault."""
        subject = StationObject(kind, scope, id)
        if subject in self.objects:
            self.faults.append(f"{subject}: the file has it twice")
        self.objects[subject] = Described(content, self.file, runs)


def read_content(path: PurePosixPath, text: bytes, faults_of_flow: PlanFaults) -> FileContent:
    """Return the objects and the faults of a file by its place below the folder."""
    found = FileContent(str(path))
    try:
        data = read_json_text(text)
    except Refused as refused:
        found.faults.append(refused.message)
        return found
    match path.parts:
        case ("scopes", scope, *_) if not re.match(NAME, scope):
            found.faults.append(f"the scope {scope!r}: expected {NAME_EXPECTED}")
        case ("scopes", scope, "station.json"):
            _read_scope(found, scope, data)
        case ("scopes", scope, "workmasters", *_, _):
            _read_work_masters(found, scope, path.stem, data)
        case ("tags", *_, _):
            _read_tags(found, data)
        case ("rules", *_, _):
            _read_rules(found, data)
        case ("flows", "stopped", *_, _):
            _read_flow(found, data, faults_of_flow, runs=False)
        case ("flows", *_, _):
            _read_flow(found, data, faults_of_flow, runs=True)
        case _:
            found.faults.append(f"no station file has this place; expected {EXPECTED}")
    return found


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
        found.faults += faults_of_work_master(master)
        found.add(ObjectKind.WORK_MASTER, scope, master.id, as_values(master))


def _read_tags(found: FileContent, data: object) -> None:
    definitions, faults = parse_definitions(data if isinstance(data, list) else [data])
    found.faults += faults
    for definition in definitions:
        # A second one of the same tag is a fault of `parse_definitions` already.
        found.objects[StationObject(ObjectKind.TAG, "", definition.tag)] = Described(as_values(definition), found.file)


def _read_rules(found: FileContent, data: object) -> None:
    items = data if isinstance(data, list) else [data]
    _, faults = parse_rules(items)
    found.faults += faults
    for item in _named(items):
        if len(msgspec.json.encode(item)) > MAX_ITEM_BYTES:
            found.faults.append(f"rule {item['id']!r}: it has more than {MAX_ITEM_BYTES} bytes")
        # A second one of the same id is a fault of `parse_rules` already.
        found.objects[StationObject(ObjectKind.RULE, "", item["id"])] = Described(item, found.file)


def _named(items: list[Any]) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            yield item


def _read_flow(found: FileContent, data: object, faults_of_flow: PlanFaults, *, runs: bool) -> None:
    found.faults += faults_of_flow(data)
    if isinstance(data, dict) and isinstance(data.get("id"), str):
        found.add(ObjectKind.FLOW, "", data["id"], data, runs=runs)


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
