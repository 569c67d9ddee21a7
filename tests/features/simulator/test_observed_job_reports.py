"""Tests of the station reports on devices whose messages are not on the broker."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from edge.features.simulator.observed_job import ObservedJob, apply_station_report
from edge.model.cloudevent import CloudEvent
from edge.model.engineering_unit import engineering_unit
from edge.model.event_types import JOB_RESPONSE_TYPE, PROGRESS_TYPE
from edge.model.isa95 import JobResponse, Parameter
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.model.recipe import Action, Interaction, Qualifier, Recipe, Step

RECIPE = Recipe(
    steps=(Step("Tighten", initial=True),),
    actions=(
        Action("tighten", "Tighten", Qualifier.N, Interaction.PUSH_COMMAND, "tighten.v1", parameters={"torque": 85}),
        Action("light", "Tighten", Qualifier.N, Interaction.PUSH_COMMAND, "light.v1"),
    ),
)
DEVICES = {"tighten.v1": "wrench"}


def message(type_id: str, data: object) -> CloudEvent:
    return CloudEvent(id="e", source="/t", type=type_id, data=msgspec.to_builtins(data))


def progress(action: str, phase: str = "start", job: str = "J1") -> CloudEvent:
    command = {"action": action, "phase": phase, "attempt": 1, "type_id": f"{action}.v1"}
    return message(PROGRESS_TYPE, {"job_order_id": job, "steps": [], "commands": [command]})


def response(*results: Parameter, **fields: Any) -> CloudEvent:
    ended = JobStatus(JobState.ENDED, SubState.COMPLETED)
    whole = JobResponse(
        job_response_id="R", job_order_id="J1", job_state=state_entries(ended), job_response_data=results, **fields
    )
    return message(JOB_RESPONSE_TYPE, whole)


def test_commands_are_read_from_progress_and_results_from_the_end() -> None:
    job = ObservedJob("station-1", "J1", RECIPE)
    apply_station_report(job, progress("tighten"), DEVICES, 1)
    torque = Parameter(id="torque", value=85.2, engineering_units=engineering_unit("N·m"))
    result = Parameter(id="tighten", subparameters=(torque, Parameter(id="result_id", value="T1")))
    apply_station_report(job, response(result, end_time=datetime(2026, 1, 2, tzinfo=UTC)), DEVICES, 2)
    assert [entry.text for entry in job.log_entries] == [
        "tighten → wrench  torque 85",
        "tighten ← wrench  torque 85.2 N·m",
    ]
    action = job.actions["tighten"]
    assert (action.equipment, action.came_at, job.commands) == ("wrench", None, 1)


def test_messages_of_other_devices_are_ignored() -> None:
    job = ObservedJob("station-1", "J1", RECIPE)
    for event in (
        progress("light"),
        progress("tighten", phase="stop"),
        progress("tighten", job="J2"),
        response(Parameter(id="tighten", value=1)),
        response(Parameter(id="tighten", value=1), end_time=datetime(2026, 1, 2, tzinfo=UTC)),
    ):
        apply_station_report(job, event, DEVICES, 1)
    assert job.log_entries == []
