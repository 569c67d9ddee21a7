"""Releases the open stops of equipment in the name of the user who runs the command."""

from collections.abc import Sequence
from pathlib import Path

from edge.cli.terminal.audit import recorded
from edge.cli.terminal.operator import operator_name
from edge.cli.terminal.store_access import open_access, usage_failure
from edge.station.clock import store_clock
from edge.station.release import release
from edge.station.runs import Runs
from edge.store.safing import SafingCommand


async def release_stops(
    settings_file: Path | None, name: str, command_id: str | None, reason: str
) -> Sequence[SafingCommand]:
    """Release the open stops and resets of equipment, all or those of one command; return them."""
    async with open_access(settings_file) as at:
        if name not in at.settings.southbound:
            usage_failure(f"the settings have no [southbound.{name}]")
        type_ids = at.settings.southbound[name].type_ids
        active_runs = Runs(at.store, await store_clock(at.store), at.settings.retention.ended_jobs * 1000)
        async with recorded(at, "equipment release", command_id or name, reason):
            return await release(active_runs, type_ids, command_id, operator_name(), reason)
