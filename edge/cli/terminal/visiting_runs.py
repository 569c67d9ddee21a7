"""Opens the run service for a command of the CLI, which decides about runs but sends nothing: a gateway sends."""

from edge.cli.terminal.store_access import StoreAccess
from edge.station.clock import store_clock
from edge.station.decision import second_person
from edge.station.runs import Runs


async def visiting_runs(at: StoreAccess) -> Runs:
    """Return the run service for one command, with the gateway's settings; its clock is that of the store's host."""
    keep, users = at.settings.retention, at.settings.users
    return Runs(
        at.store,
        await store_clock(at.store),
        keep.ended_jobs * 1000,
        most_decisions=keep.decisions,
        second_person=second_person(users),
    )
