"""`edge results`: finds, shows and exports ended jobs of the archive, and copies it."""

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from edge.app.features import gateway_settings
from edge.cli.jobs.results import results_text
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import json_option, log_to_stderr, settings_option
from edge.cli.terminal.table import local_time, plain_table, print_table, wide_option
from edge.features.archive.database import copy_to
from edge.features.archive.export import ExportFormat, write_jobs
from edge.features.archive.record import (
    CODE,
    EQUIPMENT,
    OUTCOME,
    PARAMETER,
    PERSON,
    SCOPE,
    VERDICT,
    VIOLATION,
    WORK_MASTER,
    Term,
    term_of,
)
from edge.features.archive.search import ArchivedJob, Search, all_jobs, find_jobs, load_archived
from edge.features.archive.settings import ArchiveSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.files import replace_atomically, sync
from edge.foundation.text import Text
from edge.model.instant import milliseconds
from edge.station.public_result import public_results

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_TERMS: Final = {
    "work_master": WORK_MASTER,
    "scope": SCOPE,
    "equipment": EQUIPMENT,
    "person": PERSON,
    "code": CODE,
    "outcome": OUTCOME,
    "verdict": VERDICT,
    "violation": VIOLATION,
}


@click.group(cls=CommandGroup)
def results() -> None:
    """Find, show and export ended jobs of the archive, months back.

    The archive is a file of this gateway, `[archive] directory`; no gateway has to run. The exit status is 0 on
    success, 1 when the archive has no such job or cannot be read, and 2 when settings or arguments are invalid.
    """


def _searching(work: Callable[..., None]) -> Callable[..., None]:
    """Add what jobs are searched for; `work` is called with the settings and a `Search`."""

    @click.argument("text", required=False, default="")
    @click.option("--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the order.")
    @click.option("--work-master", help="Work Master.")
    @click.option("--scope", help="Scope.")
    @click.option("--equipment", help="Equipment that was asked for, or used.")
    @click.option("--person", help="Who worked on the job, or decided about it.")
    @click.option("--code", help="Scanned code.")
    @click.option("--outcome", type=click.Choice(["completed", "failed", "stopped", "aborted"]), help="Outcome.")
    @click.option("--verdict", help="Verdict of the recipe: ok, not_ok, or its text.")
    @click.option("--violation", help="Failure or violated limit, as `torque high`, or its action.")
    @click.option("--since", type=click.DateTime(), help="End not before this local time.")
    @click.option("--until", type=click.DateTime(), help="End before this local time; a date alone includes that day.")
    @settings_option
    @functools.wraps(work)
    def command(
        text: str,
        parameters: tuple[str, ...],
        since: datetime | None,
        until: datetime | None,
        settings_file: Path | None,
        **options: Any,
    ) -> None:
        terms = [term_of(name, value) for option, name in _TERMS.items() if (value := options.pop(option)) is not None]
        search = Search(
            text=text,
            terms=(*terms, *_parameter_terms(parameters)),
            since=milliseconds(since.astimezone(UTC)) if since else 0,
            until=_end(until),
        )
        work(_archive(settings_file), search, **options)

    return command


def _parameter_terms(parameters: Sequence[str]) -> Iterator[Term]:
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"expected NAME=VALUE, got {parameter!r}", param_hint="--parameter")
        yield term_of(PARAMETER + name, value)


def _end(until: datetime | None) -> int:
    if until is None:
        return Search().until
    is_day = until == until.replace(hour=0, minute=0, second=0, microsecond=0)
    return milliseconds((until + timedelta(days=1 if is_day else 0)).astimezone(UTC)) - 1


def _archive(settings_file: Path | None) -> ArchiveSettings:
    settings = gateway_settings(settings_file, os.environ).section(ArchiveSettings)
    log_to_stderr()
    if not settings.is_on:
        raise SettingsError(["archive: has no directory"], "Set [archive] directory.")
    return settings


@results.command(epilog="Example: edge results find WVWZZZ1JZXW000215 --since 2026-11-01")
@_searching
@click.option("--last", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="N", help="At most N.")
@click.option("--after", default="", metavar="NEXT", help="The `next` of the page before.")
@wide_option
@json_option
def find(archive: ArchiveSettings, search: Search, last: int, after: str, *, as_json: bool) -> None:
    """Find ended jobs, the newest first.

    TEXT is an identifier, or its beginning: a VIN, a job order, a scanned code, a lot, a person, any parameter of the
    order.
    """
    page = find_jobs(archive.file, msgspec.structs.replace(search, after=after), last)
    if as_json:
        print_json(page)
        return
    if not page.jobs:
        print_text("no jobs")
        return
    columns = ("verdict", "job", "parameters", "work master", "ended", "took s", "remark")
    print_table(plain_table(*columns, rows=map(_cells, page.jobs), empty="no jobs"))
    if page.next:
        print_text(f"more: --after {page.next}")


def _cells(job: ArchivedJob) -> tuple[object, ...]:
    took = "" if job.took_ms is None else f"{job.took_ms / 1000:.1f}"
    parameters = " ".join(f"{name}={value}" for name, value in job.parameters.items())
    ended = local_time(milliseconds(datetime.fromisoformat(job.ended_at)))
    return job.verdict or job.outcome, job.job_order_id, parameters, job.work_master, ended, took, job.remark


@results.command(epilog="Example: edge results show ORDER-1001")
@click.argument("job")
@settings_option
@json_option
def show(job: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show an archived job with its results.

    JOB is the id of its response, or its JobOrderID: then the last job of that id is shown.
    """
    detail = load_archived(_archive(settings_file).file, job)
    public = public_results(detail.stored)
    if as_json:
        print_json(
            {
                "job": detail.line,
                "order": detail.stored.job.order,
                "response": detail.stored.response,
                "results": public,
            }
        )
        return
    line = detail.line
    print_text(f"{line.job_order_id}: {line.verdict or line.outcome}, {line.work_master}, ended {line.ended_at}")
    for name, value in line.parameters.items():
        print_text(f"  {name}: {value}")
    for name, ms in line.step_ms.items():
        print_text(f"  step {name}: {ms / 1000:.1f} s")
    for reason in line.reasons:
        print_text(f"  {reason}")
    for text in results_text(public):
        print_text(text)


@results.command(epilog="Example: edge results export october.csv --since 2026-10-01 --until 2026-10-31")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@_searching
@click.option(
    "--format",
    "form",
    type=click.Choice([item.value for item in ExportFormat]),
    help="Form of the file.  [default: by the end of its name, else jsonl]",
)
@click.option("--column", "columns", multiple=True, metavar="PARAMETER", help="A parameter as a column of the CSV.")
def export(archive: ArchiveSettings, search: Search, file: Path, form: str | None, columns: tuple[str, ...]) -> None:
    """Write ended jobs to a file, which appears whole or not at all; - is standard output.

    The memory that it takes does not grow with the number of jobs.
    """
    ends = {f".{item.value}": item for item in ExportFormat}
    chosen = ExportFormat(form) if form else ends.get(file.suffix.lower(), ExportFormat.JSON_LINES)
    pieces = write_jobs(all_jobs(archive.file, search), chosen, columns)
    if str(file) == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    try:
        with replace_atomically(file, 0o640) as out:
            for piece in pieces:
                out.write(piece)
            sync(out)
    except OSError as error:
        message = Text.of("{output}: cannot be written: {reason}", output=file, reason=error.strerror)
        raise Unavailable(message, "Name a file where you may write.") from error
    print_text(f"{file}: {file.stat().st_size:,} bytes")


@results.command(epilog="Example: edge results copy /media/usb/results.sqlite")
@click.argument("file", type=_FILE)
@settings_option
def copy(file: Path, settings_file: Path | None) -> None:
    """Copy the archive to a file while the gateway works, as a backup.

    To restore it, stop the gateway and put the copy in the place of the file in `[archive] directory`.
    """
    archive = _archive(settings_file)
    if file.exists():
        raise click.UsageError(f"{file} exists.")
    copy_to(archive.file, file)
    print_text(f"{file}: {file.stat().st_size:,} bytes")
