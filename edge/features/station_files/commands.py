"""The commands that work with station files: `edge station diff`, `apply` and `export`, `edge check station`."""

import asyncio
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import msgspec
from msgspec import Struct

from edge.app.documents import GuardedStore
from edge.app.features import examine_recipe, gateway_settings
from edge.cli.files import print_result
from edge.cli.locks import owner_name
from edge.cli.terminal.command_group import further_options
from edge.cli.terminal.operator import authorize_command, record_as
from edge.cli.terminal.output import print_text, printable, usage_failure
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_command,
)
from edge.config import FeatureSettings, Settings
from edge.features.station_files.apply import all_scopes, apply_files, load_objects, read_files
from edge.features.station_files.content import StationFiles, has_files
from edge.features.station_files.documents import StationDocuments
from edge.features.station_files.export import refuse_used, write_folder
from edge.features.station_files.objects import (
    ObjectDifference,
    ObjectKind,
    Objects,
    audit_action,
    audit_subject,
    compare,
    summary,
)
from edge.foundation.errors import Refused
from edge.model.recipe import is_recipe_schema
from edge.station.clock import store_clock
from edge.store import initialization
from edge.store.reads import load_scopes


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
        return str(summary(self.differences))

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


def _read(settings_file: Path | None, folder: Path | None) -> tuple[StationFiles, StationDocuments]:
    """Read the files of a folder, or of the settings, and check them. Raises SettingsError with every fault."""
    settings = gateway_settings(settings_file)
    chosen = folder or Path(settings.station.files)
    if not settings.station.files and folder is None:
        usage_failure("[station] files is empty: name a folder")
    if not has_files(chosen):
        usage_failure(f"{chosen}: there are no station files; `edge station export FOLDER` writes those of the store")
    documents = StationDocuments(settings)
    station_files = asyncio.run(read_files(chosen, documents))
    station_files.checked()
    return station_files, documents


async def compare_with_store(at: StoreAccess, read: StationFiles, documents: StationDocuments) -> Comparison:
    """Compare the store of the settings with files."""
    files = read.checked()
    await _warn_of_scopes(at, files)
    describeds = await load_objects(at.store, all_scopes(at.settings.gateway.scopes, files), documents)
    state = await initialization.load_state(at.store)
    return Comparison(read.folder, files, describeds, compare(files, describeds), state.name.lower())


async def apply_to_store(
    at: StoreAccess, read: StationFiles, documents: StationDocuments, *, delete: bool
) -> Sequence[ObjectDifference]:
    """Apply files to the store of the settings; return what was changed."""
    await _warn_of_scopes(at, read.checked())
    user = await authorize_command(at, "station apply", str(read.folder))
    applied: list[ObjectDifference] = []

    async def report(difference: ObjectDifference) -> None:
        applied.append(difference)
        action, subject = audit_action(difference), audit_subject(difference)
        await record_as(at, user, action, subject, "Good", difference.file)

    scopes, target = at.settings.gateway.scopes, GuardedStore(at.store, await store_clock(at.store))
    try:
        await apply_files(target, owner_name(), scopes, read, documents, report, delete=delete)
    except Refused as refusal:
        await record_as(at, user, "station apply", str(read.folder), refusal.message)
        raise
    return applied


def _lines_of(differences: Iterable[ObjectDifference]) -> Iterator[str]:
    """Yield a line for each difference."""
    for item in differences:
        yield printable(f"{item.change:8} {item.subject}{f'  {item.file}' if item.file else ''}")


def _contents_of(comparison: Comparison) -> Iterator[str]:
    """Yield the contents that differ, as unified differences from the store to the files."""
    for difference in comparison.differences:
        yield from map(printable, _unified(comparison, difference))


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


async def _warn_of_scopes(at: StoreAccess, files: Objects) -> None:
    known = {*at.settings.gateway.scopes, *await load_scopes(at.store)}
    for scope in sorted({file.scope for file in files if file.scope} - known):
        print_text(f"warning: no gateway of this store has the scope {scope!r}", err=True)


DIFFERS = 3
"""The exit status of `edge station diff` where the store differs from the files."""

_folder = click.argument(
    "folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True)
)


@click.command(epilog="Example: edge station diff --content")
@_folder
@click.option("--content", is_flag=True, help="Also show the content of what differs.")
@settings_option
@json_option
def diff(folder: Path | None, settings_file: Path | None, *, content: bool, as_json: bool) -> None:
    """Show how the store differs from the station files.

    FOLDER is read in place of `[station] files`. `missing` is only in the files, `changed` is different in the store,
    `extra` is only in the store. The exit status is 3 when there is a difference, and 2 when the files have faults.
    """
    files, documents = _read(settings_file, folder)
    comparison = run_on_store(settings_file, lambda at: compare_with_store(at, files, documents))
    contents = _contents_of(comparison) if content else ()
    verdict = f"{comparison.folder}: {comparison.summary or 'no difference'}"
    text = "\n".join((*_lines_of(comparison.differences), *contents, verdict))
    CommandOutput(comparison.as_json(with_content=content), text).print(as_json=as_json)
    raise SystemExit(DIFFERS if comparison.differences else 0)


@click.command(epilog="Example: edge station apply --delete")
@_folder
@click.option("--delete", is_flag=True, help="Also delete what is not in the files.")
@settings_option
@json_option
def apply(folder: Path | None, settings_file: Path | None, *, delete: bool, as_json: bool) -> None:
    """Apply the station files to the store: it is as they are afterwards.

    FOLDER is read in place of `[station] files`. Nothing is written when a file has a fault; else each object is one
    commit and one record of the audit trail, and a second call changes nothing. A flow that is new is started, unless
    its file is in flows/stopped. What is not in the files stays, unless --delete is given.
    """
    files, documents = _read(settings_file, folder)
    applied = run_on_store(settings_file, lambda at: apply_to_store(at, files, documents, delete=delete))
    number = f"{len(applied) or 'no'} object{'' if len(applied) == 1 else 's'} changed"
    CommandOutput(applied, "\n".join((*_lines_of(applied), number))).print(as_json=as_json)


def _new_folder(_context: click.Context, _argument: click.Parameter, folder: Path) -> Path:
    refuse_used(folder)
    return folder


@click.command(epilog="Example: edge station export station.d")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), callback=_new_folder)
@store_command
async def export(at: StoreAccess, folder: Path) -> CommandOutput:
    """Write the store as station files into FOLDER, which is new or empty.

    Applied to an empty store, the files make the same station. In a checkout of Git, remove the old files first: Git
    shows what has changed.
    """
    scopes = {*at.settings.gateway.scopes, *await load_scopes(at.store)}
    try:
        written = write_folder(folder, await load_objects(at.store, scopes, StationDocuments(at.settings)))
    except OSError as error:
        usage_failure(f"{error.filename}: cannot be written: {error.strerror}")
    return CommandOutput(written, f"{folder}: {len(written)} file{'' if len(written) == 1 else 's'} written")


@click.command("station", epilog="Example: edge check station station.d")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@further_options("check station")
@json_option
def check(folder: Path, sections: Mapping[str, FeatureSettings] = MappingProxyType({}), *, as_json: bool) -> None:
    """Check station files.

    FOLDER is a folder as `[station] files`, for example a checkout of Git. No store is needed. Recipes are checked as
    by `edge check recipe`: one at which a job can stand still is a fault here. A gateway takes it at its start, with an
    alarm.
    """
    station_files = asyncio.run(read_files(folder.absolute(), StationDocuments(Settings(sections=sections))))
    faults, warnings = _examined(station_files.objects)
    print_result(folder, (*station_files.faults, *faults), warnings, as_json=as_json)


def _examined(objects: Objects) -> tuple[list[str], list[str]]:
    """Return the faults and warnings of the recipes, each with its file."""
    faults, warnings = list[str](), list[str]()
    for subject, described in objects.items():
        if subject.kind == ObjectKind.WORK_MASTER and is_recipe_schema(described.content.get("dataschema")):
            results = examine_recipe(described.content.get("data"))
            for texts, found in zip((faults, warnings), results, strict=True):
                texts += [f"{described.file}: {subject}: {text}" for text in found]
    return faults, warnings
