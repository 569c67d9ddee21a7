"""The report shows every part of a job; control characters and markup in texts are harmless."""

from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from edge.cli.jobs.tables import job_table, report, result_text, show_json, state_text
from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time
from edge.model.instant import rfc3339
from edge.model.isa95 import Equipment, EUInformation, JobOrder, LocalizedText, Material, Parameter, WorkMaster
from edge.model.job_state import JobState, JobStatus, SubState
from edge.station.stored_job import StoredJob
from edge.store.jobs import Job

ORDER = JobOrder(
    job_order_id="J[red]1",
    work_master_id=(WorkMaster(id="axle"),),
    priority=3,
    start_time=datetime(2026, 1, 2, tzinfo=UTC),
    description=(LocalizedText(text="Rear \x1b[2Jaxle"),),
    equipment_requirements=(Equipment(id="wrench"), Equipment(id="camera")),
    material_requirements=(Material(material_definition_id="bolt"), Material(material_class_id="grease")),
    job_order_parameters=(
        Parameter(id="torque", value=85, engineering_units=EUInformation(display_name=LocalizedText(text="Nm"))),
        Parameter(id="count", value={"UaType": 6, "Value": 7}),
        Parameter(id="axis", subparameters=(Parameter(id="x", value=1.5), Parameter(id="y", value="up"))),
        Parameter(
            id="bolts",
            subparameters=(
                Parameter(id="1", subparameters=(Parameter(id="x", value=1), Parameter(id="y", value=2))),
                Parameter(id="2", subparameters=(Parameter(id="x", value=3),)),
            ),
        ),
    ),
)
JOB = Job(
    order=ORDER,
    scope="station-1",
    status=JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED),
    correlation_id="c",
    stored_at=1_700_000_000_000,
    error="gone\r\n",
)


def printed(*parts: object) -> str:
    console = Console(width=200, highlight=False, markup=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return capture.get()


def test_report_shows_the_members_of_the_order() -> None:
    lines = [" ".join(line.split()) for line in printed(*report(StoredJob(JOB, None, None, None), 0)).splitlines()]
    assert lines[0] == "J[red]1 Interrupted (Suspended) in scope station-1"
    for expected in (
        "Work Master axle",
        "priority 3",
        "description Rear [2Jaxle",
        "equipment wrench, camera",
        "material bolt, grease",
        "parameter torque 85 Nm",
        "parameter count 7",
        "parameter axis x 1.5, y up",
        "parameter bolts 1 x 1, y 2; 2 x 3",
        f"earliest start {local_time(1_767_312_000_000)}",
        "error gone",
    ):
        assert expected in lines


def test_json_report_of_a_job_without_a_run_has_no_run() -> None:
    reported = show_json(StoredJob(JOB, None, None, None), 0, {})
    assert (reported["outcome"], reported["response"], reported["order"]) == (None, None, ORDER)


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
    assert (rfc3339(None), local_time(None)) == (None, "")


def test_state_without_a_substate_is_shown_alone() -> None:
    assert state_text(RUNNING) == "Running"


BOLT = {"evaluation": "OK", "torque": {"value": 85.2, "unit": "N·m"}, "angle": {"value": 42, "unit": "°"}}
BATCH = BOLT | {"counts": {"ok": 2, "not_ok": 0}, "results": {"1": BOLT, "2": BOLT}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (BOLT, "OK, torque 85.2 N·m, angle 42 °"),
        (BATCH, "OK, torque 85.2 N·m, angle 42 °, 2 parts"),
        ({"done": True, "left": [1, 2]}, '{"done": true, "left": [1, 2]}'),
        ("a text", "a text"),
        (None, ""),
    ],
    ids=["bolt", "batch", "data", "text", "none"],
)
def test_result_is_a_line_of_words(result: Any, expected: str) -> None:
    assert result_text(result) == expected
