"""Compares, applies and exports station files for the commands, and prints differences."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from edge.cli.locks import owner_name
from edge.cli.terminal.operator import authorize_command, record_as
from edge.cli.terminal.output import print_text, printable, usage_failure
from edge.cli.terminal.store_access import StoreAccess, open_access
from edge.features.flows.settings import FlowsSettings
from edge.features.station_files.apply import ReadFiles, all_scopes, apply_files, read_files
from edge.features.station_files.export import write_folder
from edge.features.station_files.folder import has_files
from edge.features.station_files.objects import ObjectDifference, Objects, audit_action, audit_subject, compare, summary
from edge.features.station_files.stored import load_objects
from edge.foundation.errors import Refused
from edge.station.clock import store_clock
from edge.store import initialization
from edge.store.bulk_reads import load_scopes


class Comparison(Struct, frozen=True):
    """The files and the store, with their differences; `filling` is the state of the mark of the store."""

    folder: Path
    files: Objects
    stored: Objects
    differences: tuple[ObjectDifference, ...]
    filling: str

    @property
    def summary(self) -> str:
        """The numbers of differences in words."""
        return summary(self.differences)

    def as_json(self, *, with_content: bool) -> dict[str, Any]:
        """Return what is printed as JSON."""
        shown = [
            msgspec.to_builtins(difference) | (self._contents(difference) if with_content else {})
            for difference in self.differences
        ]
        return {"folder": str(self.folder), "initialized": self.filling, "differences": shown}

    def _contents(self, object_difference: ObjectDifference) -> dict[str, Any]:
        sides = {"in_files": self.files, "in_store": self.stored}
        return {
            name: side[object_difference.subject].content
            for name, side in sides.items()
            if object_difference.subject in side
        }


async def find(settings_file: Path | None, folder: Path | None) -> Comparison:
    """Compare the store of the settings with the files of a folder."""
    async with open_access(settings_file) as at:
        read = await _read(at, folder)
        files = read.files.checked()
        await _warn_of_scopes(at, files)
        stored = await load_objects(at.store, all_scopes(at.settings.gateway.scopes, files))
        state = await initialization.load_state(at.store)
        return Comparison(read.files.folder, files, stored, compare(files, stored), state.name.lower())


async def apply_to_store(
    settings_file: Path | None, folder: Path | None, *, delete: bool
) -> Sequence[ObjectDifference]:
    """Apply the files of a folder to the store of the settings; return what was changed."""
    async with open_access(settings_file) as at:
        read = await _read(at, folder)
        await _warn_of_scopes(at, read.files.checked())
        user = await authorize_command(at, "station apply", str(read.files.folder))
        applied: list[ObjectDifference] = []

        async def report(object_difference: ObjectDifference) -> None:
            applied.append(object_difference)
            await record_as(
                at,
                user,
                audit_action(object_difference),
                audit_subject(object_difference),
                "Good",
                object_difference.file,
            )

        scopes, clock = at.settings.gateway.scopes, await store_clock(at.store)
        try:
            await apply_files(at.store, owner_name(), scopes, read, clock, report, delete=delete)
        except Refused as refusal:
            await record_as(at, user, "station apply", str(read.files.folder), refusal.message)
            raise
        return applied


async def export_store(settings_file: Path | None, folder: Path) -> list[str]:
    """Write the station of the store into a folder; return the names of the files."""
    async with open_access(settings_file) as at:
        scopes = {*at.settings.gateway.scopes, *await load_scopes(at.store)}
        try:
            return write_folder(folder, await load_objects(at.store, scopes))
        except OSError as error:
            usage_failure(f"{error.filename}: cannot be written: {error.strerror}")


def print_differences(differences: Iterable[ObjectDifference]) -> None:
    """Print a line for each difference."""
    for item in differences:
        print_text(printable(f"{item.change:8} {item.subject}{f'  {item.file}' if item.file else ''}"))


def print_contents(found: Comparison) -> None:
    """Print the contents that differ, as unified differences from the store to the files."""
    for element in found.differences:
        for line in _unified(found, element):
            print_text(printable(line))


def _unified(found: Comparison, object_difference: ObjectDifference) -> Iterator[str]:
    before, after = (_lines(side, object_difference) for side in (found.stored, found.files))
    return difflib.unified_diff(
        before, after, f"store: {object_difference.subject}", f"files: {object_difference.file}", lineterm=""
    )


def _lines(side: Objects, object_difference: ObjectDifference) -> list[str]:
    described = side.get(object_difference.subject)
    if described is None or described.content is None:
        return []
    text = msgspec.json.format(msgspec.json.encode(described.content, order="sorted"), indent=2)
    return text.decode().splitlines()


async def _read(at: StoreAccess, folder: Path | None) -> ReadFiles:
    chosen = folder or Path(at.settings.station.files)
    if not at.settings.station.files and folder is None:
        usage_failure("[station] files is empty: name a folder")
    if not has_files(chosen):
        usage_failure(f"{chosen}: there are no station files; `edge station export FOLDER` writes those of the store")
    return await read_files(chosen, at.settings.section(FlowsSettings).nodes)


async def _warn_of_scopes(at: StoreAccess, files: Objects) -> None:
    known = {*at.settings.gateway.scopes, *await load_scopes(at.store)}
    for scope in sorted({file.scope for file in files if file.scope} - known):
        print_text(f"warning: no gateway of this store has the scope {scope!r}", err=True)
