"""The commands that work with station files: `edge station diff`, `apply` and `export`, `edge check station`."""

import asyncio
from pathlib import Path

import click

from edge.cli.files import print_result
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import json_option, settings_option
from edge.features.flows.cli.kinds_option import kinds_option
from edge.features.station_files.apply import read_files
from edge.features.station_files.cli.files_view import (
    apply_to_store,
    export_store,
    find,
    print_contents,
    print_differences,
)

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
    found = asyncio.run(find(settings_file, folder))
    if as_json:
        print_json(found.as_json(with_content=content))
    else:
        print_differences(found.differences)
        if content:
            print_contents(found)
        print_text(f"{found.folder}: {found.summary or 'no difference'}")
    raise SystemExit(DIFFERS if found.differences else 0)


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
    applied = asyncio.run(apply_to_store(settings_file, folder, delete=delete))
    if as_json:
        print_json(applied)
        return
    print_differences(applied)
    print_text(f"{len(applied) or 'no'} object{'' if len(applied) == 1 else 's'} changed")


@click.command(epilog="Example: edge station export station.d")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@settings_option
@json_option
def export(folder: Path, settings_file: Path | None, *, as_json: bool) -> None:
    """Write the store as station files into FOLDER, which is new or empty.

    Applied to an empty store, the files make the same station. In a checkout of Git, remove the old files first: Git
    shows what has changed.
    """
    written = asyncio.run(export_store(settings_file, folder))
    if as_json:
        print_json(written)
        return
    print_text(f"{folder}: {len(written)} file{'' if len(written) == 1 else 's'} written")


@click.command("station", epilog="Example: edge check station station.d")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@kinds_option
@json_option
def check(folder: Path, kinds_folder: str | None, *, as_json: bool) -> None:
    """Check station files.

    FOLDER is a folder as `[station] files`, for example a checkout of Git. No store is needed.
    """
    found = asyncio.run(read_files(folder.absolute(), kinds_folder or "")).files
    print_result(folder, found.faults, (), as_json=as_json)
