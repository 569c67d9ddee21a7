"""Formats jobs: as a table and as data; formats states and times for all commands."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from rich.table import Table
from rich.text import Text

from edge.cli.terminal.fitted_table import local_time, plain_table, utc_time
from edge.cli.terminal.output import printable
from edge.model.isa95 import JobOrder
from edge.model.job_state import TEXT, JobState, JobStatus
from edge.store.jobs import Job

_STATE_STYLES = {
    JobState.RUNNING: "bold yellow",
    JobState.INTERRUPTED: "magenta",
    JobState.ENDED: "green",
    JobState.ABORTED: "bold red",
}


def state_text(status: JobStatus) -> str:
    """Return a state in the spelling of OPC 10031-4, with its sub-state."""
    below = f" ({status.substate.value[0]})" if status.substate else ""
    return TEXT[status.state] + below


def summary(job: Job) -> dict[str, object]:
    """Return a job as data; instants in UTC."""
    substate = job.status.substate
    return {
        "job_order_id": job.job_id,
        "scope": job.scope,
        "state": TEXT[job.status.state],
        "substate": substate.value[0] if substate else None,
        "priority": job.order.priority,
        "work_master": work_masters(job.order) or None,
        "stored_at": utc_time(job.stored_at),
        "started_at": utc_time(job.started_at),
        "ended_at": utc_time(job.ended_at),
        "error": job.error,
    }


_COLUMNS: Mapping[str, Callable[[Job], Text]] = MappingProxyType(
    {
        "id": lambda job: Text(printable(job.job_id), style="bold"),
        "scope": lambda job: Text(job.scope),
        "state": lambda job: state_cell(job.status),
        "priority": lambda job: Text("" if job.order.priority is None else str(job.order.priority)),
        "Work Master": lambda job: Text(printable(work_masters(job.order))),
        "started": lambda job: Text(local_time(job.started_at)),
        "ended": lambda job: Text(local_time(job.ended_at)),
        "error": lambda job: Text(printable(job.error or ""), style="red"),
    }
)
"""The columns of a list of jobs, each with its cell."""


def job_table(jobs: Iterable[Job]) -> Table:
    """Return jobs as a table."""
    table = plain_table(*_COLUMNS, drop=("scope", "priority", "started", "Work Master", "ended"))
    for job in jobs:
        table.add_row(*(cell(job) for cell in _COLUMNS.values()))
    return table


def state_cell(status: JobStatus) -> Text:
    """Return a coloured state."""
    return Text(state_text(status), style=_STATE_STYLES.get(status.state, ""))


def work_masters(order: JobOrder) -> str:
    """Return the Work Master ids of an order."""
    return ", ".join(work_master.id for work_master in order.work_master_id or ())
