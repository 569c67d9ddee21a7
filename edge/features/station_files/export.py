"""Writes the objects of a store as station files, in a folder that is new or empty."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec

from edge.app.features import document_kinds
from edge.features.station_files.objects import LIMIT, LISTS, ObjectKind, Objects
from edge.foundation.errors import Refused
from edge.foundation.files import replace_atomically, sync, write_atomically
from edge.foundation.text import Text

_LONGEST_NAME = 100
_MODE = 0o640


def refuse_used(folder: Path) -> None:
    """Raise Refused for a folder with files; hidden ones, such as those of Git, do not count."""
    if folder.exists() and any(file for file in folder.iterdir() if not file.name.startswith(".")):
        advice = "Name a new folder; or remove its files first: Git shows then what has changed."
        raise Refused("station", Text.of("{folder} is not empty", folder=folder), advice)


def write_folder(folder: Path, objects: Objects) -> list[str]:
    """Write the files of a folder; return their names. Raises Refused for a folder with files, and OSError."""
    refuse_used(folder)
    written = []
    for name, text in _files(objects):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text, _MODE)
        written.append(str(name))
    return written


def write_archive(file: Path, objects: Objects) -> None:
    """Write the files of a folder into an archive, below `station.d`. Raises OSError."""
    with replace_atomically(file, _MODE) as stream:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for name, text in _files(objects):
                member = tarfile.TarInfo(f"station.d/{name}")
                member.size, member.mode = len(text), _MODE
                archive.addfile(member, io.BytesIO(text))
        sync(stream)


def _files(objects: Objects) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the name and the text of each file."""
    for name, content in _contents(objects):
        yield name, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _contents(objects: Objects) -> Iterator[tuple[PurePosixPath, Any]]:
    """Yield the name and the content of each file."""
    scopes: dict[str, dict[str, Any]] = {}
    names = {kind.value: name for name, kind in LISTS.items()}
    kinds = document_kinds()
    for station_object, described in sorted(objects.items(), key=lambda pair: pair[0].place):
        match station_object.kind:
            case ObjectKind.WORK_MASTER:
                yield (
                    PurePosixPath("scopes", station_object.scope, "workmasters", file_name(station_object.id)),
                    described.content,
                )
            case kind if kind in kinds:
                folder = PurePosixPath(kinds[kind].folder, described.folder)
                yield folder / file_name(station_object.id), described.content
            case ObjectKind.JOB_ACCEPTANCE:
                scopes.setdefault(station_object.scope, {})[LIMIT] = described.content
            case _:
                scopes.setdefault(station_object.scope, {}).setdefault(names[station_object.kind], []).append(
                    station_object.id
                )
    for scope, content in scopes.items():
        yield PurePosixPath("scopes", scope, "station.json"), content


def file_name(id: str) -> str:
    """Return the name of a file for an id: any text; two ids have two names."""
    name = quote(id, safe=" +,;=@()")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(id.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return f"{name}.json"
