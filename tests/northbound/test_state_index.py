"""The index follows the changes from any loaded position."""

from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.northbound.state_index import JobStates
from edge.store.changes import Change

SCOPE = "station-1"
RUNNING = JobStatus(JobState.RUNNING)
ENDED = JobStatus(JobState.ENDED, SubState.CLOSED)
NOW = 1_700_000_000_123


def change(position: str, job_id: str, cause: Cause, status: JobStatus) -> Change:
    return Change(position, SCOPE, job_id, cause, status, NOW)


def states_of(states: JobStates) -> dict[str, tuple[list[int], bool]]:
    entries = states.index(1, NOW).jobs
    return {entry.job_order_id: ([level.state_number for level in entry.state], entry.has_result) for entry in entries}


def test_index_contains_number_scope_time_and_each_job() -> None:
    index = JobStates(SCOPE, {"J1": RUNNING, "J2": ENDED}, "5-0").index(7, NOW)
    assert (index.seq, index.scope, index.published_at.isoformat()) == (7, SCOPE, "2023-11-14T22:13:20.123000+00:00")
    assert [(job.job_order_id, job.state[0].state_text.text, job.has_result) for job in index.jobs] == [
        ("J1", "Running", False),
        ("J2", "Ended", True),
    ]


def test_only_changes_newer_than_the_loaded_position_are_applied() -> None:
    states = JobStates(SCOPE, {"J1": ENDED}, "9-5")
    states.apply(change("9-5", "J1", Cause.RUN, RUNNING))
    states.apply(change("9-4", "J0", Cause.RUN, RUNNING))
    assert states_of(states) == {"J1": ([5, 2], True)}
    states.apply(change("10-0", "J3", Cause.RUN, RUNNING))
    assert states_of(states) == {"J1": ([5, 2], True), "J3": ([3], False)}


def test_a_removed_job_is_not_in_the_index_until_it_is_stored_again() -> None:
    states = JobStates(SCOPE, {"J1": ENDED, "J2": RUNNING}, "0-0")
    states.apply(change("1-0", "J1", Cause.CLEAR, ENDED))
    states.apply(change("2-0", "J9", Cause.CANCEL, ENDED))
    assert states_of(states) == {"J2": ([3], False)}
    states.apply(change("3-0", "J1", Cause.STORE, JobStatus(JobState.NOT_ALLOWED_TO_START, SubState.READY)))
    assert states_of(states)["J1"] == ([1, 2], False)
