"""`edge store`: shows the servers of the store, changes the primary, repairs a store that does not start."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from edge.app.features import gateway_settings
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import authorize_command, record_as
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import CommandOutput, json_option, log_to_stderr, open_access, settings_option
from edge.cli.terminal.table import FittedTable
from edge.config import Settings
from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.instant import now_ms
from edge.model.instant import rfc3339
from edge.store.embedded import server_program
from edge.store.observer import open_observer
from edge.store.store_repair import repair_store
from edge.store.store_state import (
    PrimaryState,
    ReplicaState,
    SentinelState,
    StoreState,
    byte_count,
    find_problems,
    lag_text,
    may_lose,
)
from edge.store.switch_over import Report, SwitchedOver
from edge.store.switch_over import switch_over as change_primary

_ACTION = "store switch-over"
_RECORDED_WITHIN_S = 10.0
_RETRY_S = 0.5


async def run_switch_over(settings_file: Path | None, to: str, report: Report) -> SwitchedOver:
    """Change the primary and record it. Raises Refused when nothing was changed, Unavailable when that is not known."""
    async with open_access(settings_file) as at:
        user = await authorize_command(at, _ACTION, to or "*")
        settings: Settings = at.settings
    try:
        done = await change_primary(settings.redis, to, report)
    except EdgeError as error:
        with contextlib.suppress(Unavailable):
            await _record(settings_file, user, to or "*", error.message)
        raise
    await _record(settings_file, user, done.primary, "Good")
    return done


async def _record(settings_file: Path | None, user: str, subject: str, status: str) -> None:
    """Record the command in the store of now, as soon as it accepts a record. Raises Unavailable."""
    until = time.monotonic() + _RECORDED_WITHIN_S
    while True:
        try:
            async with open_access(settings_file) as at:
                return await record_as(at, user, _ACTION, subject, status)
        except Unavailable:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(_RETRY_S)


_UNKNOWN = "–"
_Server = TypeVar("_Server", PrimaryState, ReplicaState, SentinelState)


def status_output(state: StoreState) -> CommandOutput:
    """Return the state with its problems; it is failed with problems."""
    problems = find_problems(state)
    parts: list[RenderableType] = []
    for table in (_nodes(state), _sentinels(state)):
        if table.row_count:
            parts += (table, "")
    parts += (Text(printable(line)) for line in _summary(state))
    for problem in problems:
        parts.append(Text(printable(f"problem: {problem.found}"), style="yellow"))
        parts.append(Text(printable(f"  → {problem.advice}")))
    stated = [replace(problem, found=str(problem.found), advice=str(problem.advice)) for problem in problems]
    data = {**_data(state), "may_lose": may_lose(state), "problems": [msgspec.to_builtins(item) for item in stated]}
    return CommandOutput(data, tuple(parts), is_failed=bool(problems))


def _data(state: StoreState) -> dict[str, Any]:
    """Return the state with its reasons in English."""
    fence = state.fence and replace(state.fence, reason=str(state.fence.reason))
    primary = state.primary and _in_english(state.primary)
    replicas = tuple(map(_in_english, state.replicas))
    sentinels = tuple(map(_in_english, state.sentinels))
    data: dict[str, Any] = msgspec.to_builtins(
        replace(state, fence=fence, primary=primary, replicas=replicas, sentinels=sentinels)
    )
    if state.generation:
        data["generation"]["begun_at"] = rfc3339(state.generation.begun_at)
    return data


def _in_english(server: _Server) -> _Server:
    return replace(server, error=str(server.error), advice=str(server.advice))


def _nodes(state: StoreState) -> FittedTable:
    """Return the table of the data nodes."""
    table = FittedTable(
        ("data node", "role", "link", "lag", "clock", "append-only", "priority"),
        drop=("priority", "append-only", "clock", "link"),
    )
    if primary := state.primary:
        role = "primary" if primary.is_primary else _UNKNOWN if primary.error else "replica"
        link = _silence(primary) if primary.error else ""
        table.add_row(primary.address, role, link, "", _clock(primary.clock_s), _aof(primary), "")
    for replica in state.replicas:
        link = "connected" if replica.is_linked else _silence(replica) if replica.error else "no link"
        lag = lag_text(replica) or _UNKNOWN
        priority = str(replica.priority)
        table.add_row(replica.address, "replica", link, lag, _clock(replica.clock_s), _aof(replica), priority)
    return table


def _sentinels(state: StoreState) -> FittedTable:
    """Return the table of the sentinels."""
    table = FittedTable(("sentinel", "state", "primary it names", "reaches it", "quorum"), drop=("quorum",))
    for sentinel in state.sentinels:
        if sentinel.error:
            table.add_row(sentinel.address, _silence(sentinel), _UNKNOWN, _UNKNOWN, _UNKNOWN)
        else:
            reaches = "yes" if sentinel.reaches_primary else "no"
            table.add_row(sentinel.address, "answers", sentinel.primary, reaches, str(sentinel.quorum))
    return table


def _silence(server: PrimaryState | ReplicaState | SentinelState) -> str:
    """Return in two words why a server does not answer."""
    return "not usable" if server.advice else "no answer"


def _summary(state: StoreState) -> Iterator[str]:
    if primary := state.primary:
        limit = f" of {byte_count(primary.memory.limit)}" if primary.memory.limit else ", without a limit"
        used = "" if primary.error else f", {byte_count(primary.memory.used)} of memory used{limit}"
        yield f"server      {primary.address}, {primary.server or 'version unknown'}{used}"
    if fence := state.fence:
        of = f"{state.answering} of {len(state.sentinels)} sentinels answer, majority {state.majority}"
        confirmed = f"no: {fence.reason}" if fence.reason else f"yes, for the next {fence.confirmed_s:.1f} s"
        yield f"confirmed   {confirmed}; {of}, quorum {state.quorum or _UNKNOWN}"
    if generation := state.generation:
        begun = f", begun {_instant(generation.begun_at)}" if generation.begun_at else ""
        yield f"generation  {generation.id}{begun}, failover {generation.config_epoch}"
    yield f"durability  {state.durability}: {may_lose(state)}"


def _clock(clock_s: float | None) -> str:
    return _UNKNOWN if clock_s is None else f"{clock_s:+.2f} s"


def _aof(node: PrimaryState | ReplicaState) -> str:
    return _UNKNOWN if node.has_aof is None else "on" if node.has_aof else "off"


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().isoformat(" ", timespec="seconds")


@click.group(cls=CommandGroup)
def store() -> None:
    """Show and maintain the store: its servers and sentinels, and its files after a power cut.

    The exit status is 0 when all is well, 1 when something needs attention or a request is refused, and 2 when
    settings or arguments are invalid.
    """


@store.command(epilog="Example: edge store status")
@settings_option
@json_option
def status(settings_file: Path | None, *, as_json: bool) -> None:
    """Show the primary, its replicas, the sentinels, and what needs attention.

    Behind Sentinel: lag, clock and append-only file of each data node, what each sentinel sees, whether a majority
    confirms the primary, the generation of the store, and what its durability may lose. A single server shows its
    role, append-only file, clock and memory. The command needs no majority. The exit status is 1 when something needs
    attention.
    """

    async def read() -> StoreState:
        async with open_observer(settings.redis) as observer:
            return await observer.read()

    settings = gateway_settings(settings_file)
    log_to_stderr()
    status_output(asyncio.run(read())).print(as_json=as_json)


@store.command("switch-over", epilog="Example: edge store switch-over --to 10.0.0.2:6379")
@click.option("--to", metavar="HOST:PORT", default="", help="The replica. [default: Sentinel chooses]")
@settings_option
@json_option
def switch_over(to: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Promote a replica, planned: before maintenance or an upgrade of the primary's machine.

    Nothing that was accepted is lost. Work pauses for one to two seconds. Sentinel changes the roles: one of Valkey 9
    or newer coordinates that with the primary; with an older one the writes of the primary are paused meanwhile. The
    exit status is 1 when nothing was changed or the end is not known: the message says which.
    """
    done = asyncio.run(run_switch_over(settings_file, to, (lambda _text: None) if as_json else print_text))
    paused = f", writes paused for {done.paused_s:.1f} s" if done.paused_s is not None else ""
    text = f"{done.primary} is the primary instead of {done.former} after {done.took_s:.1f} s{paused}"
    CommandOutput(done, text).print(as_json=as_json)


@store.command(epilog="Example: edge store repair /var/lib/redis-microdcs")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--server",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The program of the server that wrote the files. [default: the installed one]",
)
@click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the report into this folder, too: where the gateway may not read DIRECTORY.",
)
@click.option(
    "--discard-damage",
    is_flag=True,
    help="Cut off also what lies behind a damage of the last file: jobs and results in it are lost.",
)
@json_option
def repair(directory: Path, server: Path | None, reports: Path | None, *, discard_damage: bool, as_json: bool) -> None:
    """Cut off what a power cut left at the end of the append-only file of a stopped store.

    DIRECTORY is that of the store. Only a torn command and zeros at the end are cut off. Gone is what the server had
    not yet written to the disk: with `appendfsync everysec` up to the last two seconds, more where the storage lost
    what it had confirmed. The checks of the server have to accept the result; the damaged file is kept below
    DIRECTORY/repaired. Every other damage is refused. The units of the package call this after a failed start.
    """
    done = repair_store(directory, server or Path(server_program()), now_ms(), reports, discard_damage=discard_damage)
    if done is None:
        output = CommandOutput({"repaired": False, "kept": None}, f"the append-only file in {directory} is whole")
    else:
        report = done.report
        text = f"repaired: {report.cut_bytes} bytes cut off at the end of {report.file}, kept: {done.kept}"
        output = CommandOutput({"repaired": True, **msgspec.to_builtins(report), "kept": str(done.kept)}, text)
    output.print(as_json=as_json)
