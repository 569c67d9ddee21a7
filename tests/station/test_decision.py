"""One signal, one commit: what a decision writes, it writes together."""

import pytest

from edge.model.isa95 import LocalizedText
from edge.model.job_state import NEW, Cause, JobState, JobStatus, SubState
from edge.sfc.net import Net, compile_recipe
from edge.sfc.run import new_run
from edge.sfc.signal import Abort, Answer, Ignored, Pause, Resume, Signal, Stop, Tick
from edge.station.decision import Asked, Decision, Held, NotAllowed, begin, decide
from edge.store.commit import Commit, Revision
from edge.store.jobs import Job
from edge.store.keys import Keys
from tests.station.plant import KEEP_ENDED_MS, NOW, SCOPE, action, linear, order

KEYS = Keys("p")


def net() -> Net:
    compiled = compile_recipe(linear(action("a", "one", timeout_seconds=5), action("b", "two")))
    assert isinstance(compiled, Net)
    return compiled


def job(state: JobState = JobState.ALLOWED_TO_START) -> Job:
    status = NEW[Cause.STORE_AND_START] if state is JobState.ALLOWED_TO_START else JobStatus(state)
    return Job(order=order("J1"), scope=SCOPE, status=status, correlation_id="c", stored_at=NOW)


def begun() -> Decision:
    return begin(KEYS, job(), new_run("J1", SCOPE, "c", {}), net(), NOW, KEEP_ENDED_MS)


def next_of(held: Held, signal: Signal, asked: Asked | None = None, now: int = NOW) -> Decision:
    decision = decide(KEYS, held, signal, asked, now, KEEP_ENDED_MS)
    assert isinstance(decision, Decision)
    return decision


def written(commit: Commit) -> set[str]:
    return {str(each.arguments[0]).removeprefix("p:") for each in commit.operations}


def finished() -> Decision:
    held = next_of(begun().held, Answer("J1/c/a/1", ok=True)).held
    return next_of(held, Answer("J1/c/b/1", ok=True))


def test_the_start_writes_job_response_run_timer_and_work_together() -> None:
    commit = begun().commit
    assert {"joborder:J1", "jobresponse:c", "sfc:execution:J1", "sfc:active-jobs", "sfc:timers"} <= written(commit)
    assert [entry.key for entry in commit.work] == ["p:sfc:work:station-1"]


def test_end_and_response_are_in_the_same_commit() -> None:
    decision = finished()
    assert decision.held.job.status == JobStatus(JobState.ENDED, SubState.COMPLETED)
    expected = {"joborder:J1", "jobresponse:c", "sfc:execution:J1", "sfc:active-jobs", "sfc:timers"}
    assert expected <= written(decision.commit)
    assert Revision("p:joborder:J1", 2) in decision.commit.guards
    assert Revision("p:sfc:execution:J1", NOW + 1) in decision.commit.guards


def test_a_step_in_between_leaves_job_and_response_alone() -> None:
    decision = next_of(begun().held, Answer("J1/c/a/1", ok=True))
    assert written(decision.commit) == {"sfc:execution:J1", "sfc:timers"}


def test_a_failure_aborts_with_the_reason_and_stops_what_is_outstanding() -> None:
    decision = next_of(begun().held, Tick(), now=NOW + 5000)
    after = decision.held.job
    assert after.status == JobStatus(JobState.ABORTED)
    assert after.error == "action 'a' of step 'one' timed out after 5 s"
    assert [request.phase.value for request in decision.requests] == ["stop"]
    assert decision.due == NOW + 5000 + KEEP_ENDED_MS


def test_a_tick_sets_the_timer_anew_even_if_nothing_has_changed() -> None:
    decision = next_of(begun().held, Tick(), now=NOW + 1)
    assert ("p:sfc:timers", NOW + 5000, "J1") in [each.arguments for each in decision.commit.operations]


def test_what_the_run_ignores_is_no_decision() -> None:
    assert isinstance(decide(KEYS, begun().held, Answer("J1/c/z/1", ok=True), None, NOW, KEEP_ENDED_MS), Ignored)
    assert isinstance(decide(KEYS, finished().held, Tick(), None, NOW, KEEP_ENDED_MS), Ignored)


@pytest.mark.parametrize(
    ("signal", "cause", "expected"),
    [
        (Pause(), Cause.PAUSE, JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED)),
        (Stop(), Cause.STOP, JobStatus(JobState.ENDED, SubState.CLOSED)),
        (Abort(), Cause.ABORT, JobStatus(JobState.ABORTED)),
    ],
)
def test_a_method_moves_job_and_run_together(signal: Signal, cause: Cause, expected: JobStatus) -> None:
    remark = (LocalizedText(text="lunch"),)
    after = next_of(begun().held, signal, Asked(cause, remark)).held.job
    assert after.status == expected
    assert after.comment == remark


def test_a_method_that_the_state_of_the_job_does_not_allow_is_not_allowed() -> None:
    assert decide(KEYS, begun().held, Resume(), Asked(Cause.RESUME), NOW, KEEP_ENDED_MS) == NotAllowed()


def test_a_resumed_job_that_ends_at_once_passes_through_running() -> None:
    held = next_of(begun().held, Answer("J1/c/a/1", ok=True)).held
    held = next_of(held, Pause(), Asked(Cause.PAUSE)).held
    held = next_of(held, Answer("J1/c/b/1", ok=True)).held
    decision = next_of(held, Resume(), Asked(Cause.RESUME))
    assert decision.held.job.status == JobStatus(JobState.ENDED, SubState.COMPLETED)
    noted = [each.arguments for each in decision.commit.operations if KEYS.joborder_changes(SCOPE) in each.arguments]
    assert ["Resume" in each for each in noted] == [True, False]
    assert ["Complete" in each for each in noted] == [False, True]


def test_a_paused_job_has_no_deadline_until_it_is_resumed() -> None:
    paused = next_of(begun().held, Pause(), Asked(Cause.PAUSE), NOW + 1000)
    assert paused.due is None
    assert next_of(paused.held, Resume(), Asked(Cause.RESUME), NOW + 9000).due == NOW + 13_000
