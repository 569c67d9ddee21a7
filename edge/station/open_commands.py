"""The commands that wait for an answer, in the order in which equipment gets them on a new connection."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from edge.sfc.run import is_too_late
from edge.sfc.signal import Phase
from edge.station.dispatch import command_of
from edge.station.equipment import Command
from edge.station.runs import Runs
from edge.store.runs import active_jobs


async def open_commands_of_jobs(runs: Runs, scopes: Collection[str], type_ids: Collection[str]) -> list[Command]:
    """Return the commands of these types that wait for an answer in the store, in the order of their decisions.

    Those whose time is over are left out: the timers of their runs end them.
    """
    found, now = list[tuple[int, Command]](), runs.clock()
    for job_id in await active_jobs(runs.store):
        loaded = await runs.load_readable(job_id)
        if loaded is None or loaded.job.scope not in scopes:
            continue
        queued = {(outgoing.phase, outgoing.command_id) for outgoing in runs.outbox.unsent(job_id)}
        for item in loaded.unanswered():
            if item.type_id in type_ids and not is_too_late(loaded.stored.run, item.command_id, now):
                command = command_of(loaded, item.phase, item.command_id, item.step, offered_again=True)
                is_queued = (item.phase, item.command_id) in queued
                found.append((loaded.sent_at(item.command_id) or 0, replace(command, queued=is_queued)))
    return [command for _, command in sorted(found, key=lambda row: row[0])]


def in_turn(commands: Iterable[Command]) -> list[Command]:
    """Return open commands with the begun starts first, then the resets, each kind in its order.

    Equipment may work for a begun start: another one before it would take its tool.
    """
    return sorted(commands, key=_turn)


def _turn(command: Command) -> int:
    if command.phase is Phase.START:
        return 0 if command.begun else 2
    return 1
