"""The option of `edge jobs results` that copies the traces and files of results."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from edge.cli.jobs.results import CopiedTrace, CopyFiles
from edge.config import Settings
from edge.features.traces.files import read_file
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.ports.result_trace import Reference, stored_in
from edge.station.public_result import PublicResult

_FILE_MODE = 0o644


def _copying(_context: click.Context, _option: click.Parameter, target: Path | None) -> CopyFiles | None:
    return partial(_copy_all, target) if target else None


traces_option = click.option(
    "--traces",
    "copy_files",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_copying,
    help="Copy the traces to this directory.",
)


def _copy_all(target: Path, settings: Settings, results: Sequence[PublicResult]) -> list[CopiedTrace]:
    """Copy each file to the target; each copy is compared with the hash in the result."""
    directory = Path(settings.results_folder)
    target.mkdir(parents=True, exist_ok=True)
    return [
        _copy(directory, result.action, reference, target)
        for result in results
        for reference in stored_in(result.result)
    ]


def _copy(directory: Path, action: str, reference: Reference, target: Path) -> CopiedTrace:

    path = target / Path(reference.file).name
    try:
        write_atomically(path, read_file(directory, reference), _FILE_MODE)
    except Refused as refusal:
        return CopiedTrace(action, reference, problem=refusal.message)
    return CopiedTrace(action, reference, copied=str(path))
