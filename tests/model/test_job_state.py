"""The job state machine is that of OPC 10031-4."""

import pytest

from edge.model.job_state import (
    METHODS,
    NEW,
    REMOVED,
    TRANSITIONS,
    Cause,
    JobState,
    JobStatus,
    Removed,
    SubState,
    has_ended,
    has_response,
    is_transition,
    next_status,
    state_entries,
    timed_status,
)

# OPC 10031-4, table 7: number, from, to, caused by. States by their numbers of table 6.
STANDARD = [
    (1, 1, 1, "Update"),
    (2, 1, 2, "Start"),
    (3, 2, 1, "RevokeStart"),
    (4, 2, 2, "Update"),
    (5, 2, 3, "Run"),
    (6, 3, 4, "Pause"),
    (6, 3, 4, "Hold"),
    (7, 3, 5, "Stop"),
    (7, 3, 5, "Complete"),
    (8, 3, 6, "Abort"),
    (8, 3, 6, "Fail"),
    (9, 4, 6, "Abort"),
    (9, 4, 6, "Fail"),
    (10, 4, 3, "Resume"),
    (11, 4, 5, "Stop"),
    (12, 1, 6, "Abort"),
    (13, 2, 6, "Abort"),
    (13, 2, 6, "Fail"),
]


def test_the_transitions_are_those_of_the_standard() -> None:
    ours = {
        (row.number, int(state), int(row.target.state), str(cause))
        for (state, cause), row in TRANSITIONS.items()
        if not isinstance(row.target, Removed)
    }
    assert ours == set(STANDARD)


def test_cancel_removes_unstarted_jobs_and_clear_removes_ended_jobs() -> None:
    removed = {(int(state), str(cause)) for (state, cause), row in TRANSITIONS.items() if row.target is REMOVED}
    assert removed == {(1, "Cancel"), (2, "Cancel"), (5, "Clear"), (6, "Clear"), (5, "Expired"), (6, "Expired")}


def test_state_numbers_are_those_of_table_6() -> None:
    assert [(int(state), state.name) for state in JobState] == [
        (1, "NOT_ALLOWED_TO_START"),
        (2, "ALLOWED_TO_START"),
        (3, "RUNNING"),
        (4, "INTERRUPTED"),
        (5, "ENDED"),
        (6, "ABORTED"),
    ]


def test_eleven_methods_have_their_browse_names() -> None:
    names = "Store StoreAndStart Start RevokeStart Update Pause Resume Stop Abort Cancel Clear"
    assert [str(method) for method in METHODS] == names.split()


def test_store_creates_a_job_and_changes_no_existing_job() -> None:
    assert NEW[Cause.STORE].state is JobState.NOT_ALLOWED_TO_START
    assert NEW[Cause.STORE_AND_START].state is JobState.ALLOWED_TO_START
    assert all(next_status(state, cause) is None for state in JobState for cause in NEW)


@pytest.mark.parametrize("state", [JobState.ENDED, JobState.ABORTED])
def test_only_removal_is_allowed_in_an_end_state(state: JobState) -> None:
    assert [cause for cause in Cause if next_status(state, cause) is not None] == [Cause.CLEAR, Cause.EXPIRE]


def test_every_state_can_be_reached() -> None:
    job_states = {status.state for status in NEW.values()}
    for _ in JobState:
        job_states |= {
            target.state
            for state in job_states
            for cause in Cause
            if isinstance(target := next_status(state, cause), JobStatus)
        }
    assert job_states == set(JobState)


def test_storing_and_removing_are_not_transitions() -> None:
    others = {Cause.STORE, Cause.STORE_AND_START, Cause.CANCEL, Cause.CLEAR, Cause.EXPIRE, Cause.RESULT_UPDATE}
    assert {cause for cause in Cause if not is_transition(cause)} == others


def test_response_exists_in_all_but_the_first_two_states() -> None:
    assert [int(state) for state in JobState if has_response(JobStatus(state))] == [3, 4, 5, 6]
    assert [int(state) for state in JobState if has_ended(JobStatus(state))] == [5, 6]


@pytest.mark.parametrize(
    ("status", "text", "sub"),
    [
        (NEW[Cause.STORE], "NotAllowedToStart", ("NotAllowedToStartSubstates", "Ready", 2)),
        (NEW[Cause.STORE_AND_START], "AllowedToStart", ("AllowedToStartSubstates", "Ready", 2)),
        (JobStatus(JobState.INTERRUPTED, SubState.HELD), "Interrupted", ("InterruptedSubstates", "Held", 1)),
        (JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED), "Interrupted", ("InterruptedSubstates", "Suspended", 2)),
        (JobStatus(JobState.ENDED, SubState.COMPLETED), "Ended", ("EndedSubstates", "Completed", 1)),
        (JobStatus(JobState.ENDED, SubState.CLOSED), "Ended", ("EndedSubstates", "Closed", 2)),
    ],
)
def test_status_lists_the_top_level_state_before_its_sub_state(
    status: JobStatus, text: str, sub: tuple[str, str, int]
) -> None:
    top, below = state_entries(status)
    assert (top.state_text.text, top.state_number, top.browse_path) == (text, int(status.state), None)
    assert below.browse_path
    (element,) = below.browse_path.elements
    namespace, _, name = element.target_name.partition(";")
    assert (name, below.state_text.text, below.state_number) == sub
    assert namespace == "nsu=http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/"


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.ABORTED])
def test_a_status_without_sub_state_is_one_entry(state: JobState) -> None:
    assert len(state_entries(JobStatus(state))) == 1


def test_job_with_a_future_start_time_is_waiting() -> None:
    allowed = NEW[Cause.STORE_AND_START]
    assert timed_status(allowed, is_early=True) == JobStatus(JobState.ALLOWED_TO_START, SubState.WAITING)
    assert timed_status(allowed, is_early=False) == allowed
    assert timed_status(JobStatus(JobState.RUNNING), is_early=True) == JobStatus(JobState.RUNNING)
