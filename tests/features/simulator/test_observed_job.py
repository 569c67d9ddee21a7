"""Tests of the observed job: its states, deviations and log entries."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from edge.features.simulator.observed_job import ObservedJob, plain_text, status_text
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import JOB_RESPONSE_TYPE, PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import JobOrder, JobResponse, JobStatusEvent, LocalizedText
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.model.recipe import Action, Interaction, Qualifier, Recipe, Step, Transition

RECIPE = Recipe(
    steps=(Step("Tighten", initial=True), Step("Look")),
    actions=(
        Action("tighten", "Tighten", Qualifier.N, Interaction.PUSH_COMMAND, "tighten.v1"),
        Action("look", "Look", Qualifier.N, Interaction.PULL_EVENT, "look.v1"),
    ),
)
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENDED = JobStatus(JobState.ENDED, SubState.COMPLETED)


def sent(type_id: str, data: object, event_id: str = "e", **attributes: Any) -> CloudEvent:
    """Return a received event, with its data as builtins."""
    return CloudEvent(id=event_id, source="/t", type=type_id, data=msgspec.to_builtins(data), **attributes)


def status(state: JobStatus, job: str = "J1") -> CloudEvent:
    status_event = JobStatusEvent(job_order=JobOrder(job_order_id=job), job_state=state_entries(state))
    return sent(STATUS_EVENT_TYPE, status_event)


def response(state: JobStatus, why: str = "", job: str = "J1") -> CloudEvent:
    return sent(
        JOB_RESPONSE_TYPE,
        JobResponse(
            job_response_id="R",
            job_order_id=job,
            description=LocalizedText(text=why) if why else None,
            start_time=STARTED,
            end_time=STARTED + timedelta(milliseconds=1500),
            job_state=state_entries(state),
        ),
    )


def progress(*steps: tuple[str, bool], job: str = "J1") -> CloudEvent:
    return sent(
        PROGRESS_TYPE, {"job_order_id": job, "steps": [{"step": name, "active": active} for name, active in steps]}
    )


def command(job: str = "J1", phase: str = "start") -> CloudEvent:
    data = {"job_id": job, "action": "tighten", "attempt": 1, "parameters": {"torque": "85Nm"}}
    return sent("tighten.v1", data, "c1", extensions={"phase": phase})


def answer(**attributes: Any) -> CloudEvent:
    return sent("tighten.v1", {"torque": 85.2}, causationid="c1", **attributes)


def task(job: str = "J1") -> CloudEvent:
    return sent("look.v1", {"job_id": job, "action": "look"}, causationid="q1")


@pytest.fixture
def job() -> ObservedJob:
    return ObservedJob("station-1", "J1", RECIPE)


def see_a_good_run(job: ObservedJob) -> None:
    job.take_job_message(progress(("Tighten", True)), 10)
    job.take_equipment_message("wrench", "commands", command(), 20)
    job.take_job_message(status(JobStatus(JobState.RUNNING)), 25)
    job.take_equipment_message("wrench", "answers", answer(), 620)
    job.take_job_message(progress(("Tighten", False), ("Look", True)), 630)
    job.take_equipment_message("camera", "events", sent("look.v1", {"pass": True}, "q1"), 700)
    job.take_equipment_message("camera", "tasks", task(), 710)
    job.take_job_message(status(ENDED), 720)
    job.take_job_message(response(ENDED), 730)


def test_successful_run_has_no_faults_and_is_reported_in_order(job: ObservedJob) -> None:
    see_a_good_run(job)
    assert job.faults() == []
    assert (job.has_ended, job.status, job.milliseconds) == (True, "Ended (Completed)", 1500)
    assert (job.commands, job.active_steps) == (1, 2)
    assert [(entry.at, entry.kind, entry.text) for entry in job.log_entries] == [
        (10, "step", "Tighten"),
        (20, "command", "tighten → wrench  torque 85Nm"),
        (25, "state", "Running"),
        (620, "answer", "tighten ← wrench  torque 85.2"),
        (630, "step", "Look"),
        (710, "event", "look ← camera  pass yes"),
        (720, "state", "Ended (Completed)"),
    ]


def test_job_without_any_message_has_every_fault(job: ObservedJob) -> None:
    assert job.faults() == [
        "the job is no response",
        "the last status event says nothing, the response no response",
        "step Tighten was never active",
        "step Look was never active",
        "no command was sent for tighten",
        "no event was taken for look",
    ]


def test_aborted_job_reports_the_reason(job: ObservedJob) -> None:
    job.take_job_message(status(JobStatus(JobState.ABORTED)), 1)
    job.take_job_message(response(JobStatus(JobState.ABORTED), "the wrench is broken"), 1)
    assert job.has_ended
    assert job.faults() == ["the job is Aborted: the wrench is broken"]


def test_a_command_without_an_answer_is_a_fault(job: ObservedJob) -> None:
    job.take_equipment_message("wrench", "commands", command(), 1)
    assert "the command tighten to wrench was not answered" in job.faults()


def test_a_failed_answer_is_reported_with_its_reason(job: ObservedJob) -> None:
    job.take_equipment_message("wrench", "commands", command(), 1)
    job.take_equipment_message("wrench", "answers", answer(mdcserrorkind="slipped", mdcserrormessage="it slipped"), 2)
    assert job.actions["tighten"].error == "it slipped"
    assert job.log_entries[-1].text == "tighten ← wrench  failed: it slipped"


def test_stop_command_is_not_counted_as_a_command(job: ObservedJob) -> None:
    job.take_equipment_message("wrench", "commands", command(), 1)
    job.take_equipment_message("wrench", "commands", command(phase="stop"), 2)
    assert job.commands == 1
    assert job.log_entries[-1].text.startswith("stop tighten → wrench")


def test_messages_of_other_jobs_are_ignored(job: ObservedJob) -> None:
    job.take_job_message(progress(("Tighten", True), job="J2"), 1)
    job.take_job_message(status(ENDED, job="J2"), 1)
    job.take_job_message(response(ENDED, job="J2"), 1)
    job.take_job_message(sent("other.v1", None), 1)
    job.take_equipment_message("wrench", "commands", command(job="J2"), 1)
    job.take_equipment_message("wrench", "answers", answer(), 1)
    job.take_equipment_message("camera", "events", sent("look.v1", {}, "q1"), 1)
    job.take_equipment_message("camera", "tasks", task(job="J2"), 1)
    job.take_equipment_message("camera", "data", sent("look.v1", {}), 1)
    assert job.log_entries == []
    assert not job.has_ended


@pytest.mark.parametrize(
    ("data", "text"),
    [({"torque": 85.2, "ok": True}, "torque 85.2, ok yes"), ({"a": {"b": False}}, "a b no"), (None, ""), ("x", "x")],
)
def test_data_is_formatted_as_text(data: object, text: str) -> None:
    assert plain_text(data) == text


def test_state_is_formatted_with_its_substate() -> None:
    assert status_text(state_entries(ENDED)) == "Ended (Completed)"
    assert status_text(state_entries(JobStatus(JobState.RUNNING))) == "Running"
    assert status_text(()) == ""


def test_job_reaches_one_of_its_last_steps() -> None:
    ways = (Transition("Fit", "Complete", "ok"), Transition("Fit", "Rejected", "always", 1))
    steps = (Step("Fit", initial=True), Step("Complete"), Step("Rejected"))
    observed = ObservedJob("s", "J1", Recipe(steps=steps, transitions=ways))
    observed.take_job_message(progress(("Fit", True), ("Complete", True)), 1)
    assert not any("was never active" in fault for fault in observed.faults())
    observed = ObservedJob("s", "J1", Recipe(steps=steps, transitions=ways))
    observed.take_job_message(progress(("Fit", True)), 1)
    assert sum("was never active" in fault for fault in observed.faults()) == 2
