"""A job is one line of the list; control characters and markup in its texts are harmless."""

import pytest
from rich.console import Console

from edge.cli.jobs.table import job_table, state_text
from edge.cli.terminal.fitted_table import local_time, utc_time
from edge.cli.terminal.output import printable
from edge.model.isa95 import JobOrder, WorkMaster
from edge.model.job_state import JobState, JobStatus
from edge.store.jobs import Job

RUNNING = JobStatus(JobState.RUNNING)


def test_list_shows_markup_characters_literally() -> None:
    order = JobOrder(job_order_id="J[red]1", work_master_id=(WorkMaster(id="axle"), WorkMaster(id="\x1b[2J")))
    job = Job(order=order, scope="station-1", status=RUNNING, correlation_id="c", stored_at=1)
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        console.print(job_table([job]))
    assert capture.get().splitlines()[1].split() == ["J[red]1", "station-1", "Running", "axle,", "[2J"]


@pytest.mark.parametrize(("text", "shown"), [("äöü ✓", "äöü ✓"), ("a\x1b[31mb", "a [31mb"), ("a\x9b1mb\n", "a 1mb ")])
def test_control_characters_are_not_printed(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_missing_instant_is_shown_as_empty() -> None:
    assert (utc_time(None), local_time(None)) == (None, "")


def test_state_without_a_substate_is_shown_alone() -> None:
    assert state_text(RUNNING) == "Running"
