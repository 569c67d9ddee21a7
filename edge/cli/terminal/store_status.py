"""Prints the state of the store: its servers, its sentinels, and what needs attention."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.text import Text

from edge.cli.terminal.fitted_table import FittedTable
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import open_console, print_json
from edge.store.store_state import (
    PrimaryState,
    ReplicaState,
    StoreProblem,
    StoreState,
    byte_count,
    find_problems,
    lag_text,
    may_lose,
)

_UNKNOWN = "–"


def print_state(state: StoreState, *, as_json: bool) -> int:
    """Print the state with its problems; return the exit status, 1 with problems."""
    problems = find_problems(state)
    if as_json:
        print_json({**msgspec.to_builtins(state), "may_lose": may_lose(state), "problems": problems})
    else:
        _print(open_console(), state, problems)
    return int(bool(problems))


def _print(console: Console, state: StoreState, problems: tuple[StoreProblem, ...]) -> None:
    for table in (_nodes(state), _sentinels(state)):
        if table.row_count:
            console.print(table)
            console.print()
    for line in _summary(state):
        console.print(Text(printable(line)))
    for problem in problems:
        console.print(Text(printable(f"problem: {problem.found}"), style="yellow"))
        console.print(Text(printable(f"  → {problem.advice}")))


def _nodes(state: StoreState) -> FittedTable:
    """Return the table of the data nodes."""
    table = FittedTable(
        ("data node", "role", "link", "lag", "clock", "append-only", "priority"),
        drop=("priority", "append-only", "clock", "link"),
    )
    if primary := state.primary:
        role = "primary" if primary.is_primary else _UNKNOWN if primary.error else "replica"
        link = "no answer" if primary.error else ""
        table.add_row(primary.address, role, link, "", _clock(primary.clock_s), _aof(primary), "")
    for replica in state.replicas:
        link = "connected" if replica.is_linked else "no answer" if replica.error else "no link"
        lag = lag_text(replica) or _UNKNOWN
        priority = str(replica.priority)
        table.add_row(replica.address, "replica", link, lag, _clock(replica.clock_s), _aof(replica), priority)
    return table


def _sentinels(state: StoreState) -> FittedTable:
    """Return the table of the sentinels."""
    table = FittedTable(("sentinel", "state", "primary it names", "reaches it", "quorum"), drop=("quorum",))
    for sentinel in state.sentinels:
        if sentinel.error:
            table.add_row(sentinel.address, "no answer", _UNKNOWN, _UNKNOWN, _UNKNOWN)
        else:
            reaches = "yes" if sentinel.reaches_primary else "no"
            table.add_row(sentinel.address, "answers", sentinel.primary, reaches, str(sentinel.quorum))
    return table


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
