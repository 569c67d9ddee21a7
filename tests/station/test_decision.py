"""Everything that a decision writes is one commit."""

import pytest

from edge.model.isa95 import LocalizedText
from edge.model.job_state import NEW, Cause, JobState, JobStatus, SubState
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.sfc.signal import Abort, Answer, Ignored, Pause, Phase, Resume, Signal, Stop, Tick
from edge.station.decision import Decision, InstanceContext, LoadedJob, MethodRequest, NotAllowed, begin, decide
from edge.store.commit import Commit, at_revision
from edge.store.jobs import Job
from edge.store.keys import Keys
from edge.store.runs import NO_CONSUMER, Outgoing
from tests.station.plant import KEEP_ENDED_MS, NOW, SCOPE, action, linear, order

CONTEXT = InstanceContext(Keys("p"), "edge", KEEP_ENDED_MS, 1000)


FIRST = Outgoing(Phase.START, "J1/c/a/1", "one", "tighten.v1")


def net() -> Net:
    compiled = compile_recipe(linear(action("a", "one", timeout_seconds=5), action("b", "two")))
    assert isinstance(compiled, Net)
    return compiled


def job(state: JobState = JobState.ALLOWED_TO_START) -> Job:
    status = NEW[Cause.STORE_AND_START] if state is JobState.ALLOWED_TO_START else JobStatus(state)
    return Job(order=order("J1"), scope=SCOPE, status=status, correlation_id="c", stored_at=NOW)


def begun() -> Decision:
    return begin(CONTEXT, job(), new_run("J1", SCOPE, "c", {}), net(), NOW)


def next_of(loaded: LoadedJob, signal: Signal, request: MethodRequest | None = None, now: int = NOW) -> Decision:
    decision = decide(CONTEXT, loaded, (), signal, request, now)
    assert isinstance(decision, Decision)
    return decision


def written(commit: Commit) -> set[str]:
    return {str(operation[1]).removeprefix("p:") for operation in commit.operations}


def finished() -> Decision:
    loaded = next_of(begun().loaded, Answer("J1/c/a/1", ok=True)).loaded
    return next_of(loaded, Answer("J1/c/b/1", ok=True))


def test_start_commits_job_response_run_timer_and_outbox_together() -> None:
    decision = begun()
    expected = {"joborder:J1", "jobresponse:c", "sfc:execution:J1", "sfc:active-jobs", "sfc:timers"}
    assert expected <= written(decision.commit)
    assert decision.loaded.stored.outbox == (FIRST,)
    (run,) = [
        operation for operation in decision.commit.operations if operation[0] == "HSET" and "outbox:edge" in operation
    ]
    assert run[1] == "p:sfc:execution:J1"


def test_unsent_commands_of_earlier_decisions_stay_in_the_outbox() -> None:
    decision = decide(CONTEXT, begun().loaded, (FIRST,), Answer("J1/c/a/1", ok=True), None, NOW)
    assert isinstance(decision, Decision)
    assert decision.loaded.stored.outbox == (FIRST, Outgoing(Phase.START, "J1/c/b/1", "two", "tighten.v1"))


def test_decision_of_a_store_client_is_queued_for_an_instance() -> None:
    visitor = InstanceContext(CONTEXT.keys, NO_CONSUMER, KEEP_ENDED_MS, 1000)
    decision = decide(visitor, begun().loaded, (), Abort(), MethodRequest(Cause.ABORT), NOW)
    assert isinstance(decision, Decision)
    assert "sfc:work:station-1" in written(decision.commit)
    assert not [operation for operation in decision.commit.operations if operation[0] == "SREM"]


@pytest.mark.parametrize("signals", [(Pause(),), (Pause(), Resume())], ids=["pause", "resume"])
def test_pause_by_a_store_client_is_queued_for_an_instance(signals: tuple[Signal, ...]) -> None:
    """A decision without a new command has a pause to send: the command line has no equipment."""
    visitor = InstanceContext(CONTEXT.keys, NO_CONSUMER, KEEP_ENDED_MS, 1000)
    last = begun()
    for signal in signals:
        decision = decide(visitor, last.loaded, (), signal, None, NOW)
        assert isinstance(decision, Decision)
        last = decision
    assert "sfc:work:station-1" in written(last.commit)


def test_end_and_response_are_in_the_same_commit() -> None:
    decision = finished()
    assert decision.loaded.job.status == JobStatus(JobState.ENDED, SubState.COMPLETED)
    expected = {"joborder:J1", "jobresponse:c", "sfc:execution:J1", "sfc:active-jobs", "sfc:timers"}
    assert expected <= written(decision.commit)
    assert at_revision("p:joborder:J1", 2) in decision.commit.guards
    assert at_revision("p:sfc:execution:J1", NOW + 1) in decision.commit.guards


def test_intermediate_step_writes_only_run_and_history() -> None:
    decision = next_of(begun().loaded, Answer("J1/c/a/1", ok=True))
    assert written(decision.commit) == {"sfc:execution:J1", "sfc:history:J1"}


def test_timer_is_rewritten_only_if_it_would_fire_too_late() -> None:
    step = linear(action("a", "one", timeout_seconds=5), action("b", "two", timeout_seconds=2))
    quicker = compile_recipe(step)
    assert isinstance(quicker, Net)
    first = begin(CONTEXT, job(), new_run("J1", SCOPE, "c", {}), quicker, NOW)
    assert first.loaded.timer == NOW + 5000
    later = decide(CONTEXT, first.loaded, (), Answer("J1/c/a/1", ok=True), None, NOW + 4000)
    sooner = decide(CONTEXT, first.loaded, (), Answer("J1/c/a/1", ok=True), None, NOW + 1000)
    assert isinstance(later, Decision)
    assert isinstance(sooner, Decision)
    assert (later.due, later.loaded.timer) == (NOW + 6000, NOW + 5000)
    assert (sooner.due, sooner.loaded.timer) == (NOW + 3000, NOW + 3000)
    assert "sfc:timers" not in written(later.commit)
    assert "sfc:timers" in written(sooner.commit)


def test_failure_aborts_the_job_and_stops_outstanding_commands() -> None:
    decision = next_of(begun().loaded, Tick(), now=NOW + 5000)
    after = decision.loaded.job
    assert after.status == JobStatus(JobState.ABORTED)
    assert str(after.error) == "action 'a' of step 'one' timed out after 5 s"
    assert [request.phase.value for request in decision.requests] == ["stop"]
    assert decision.due == NOW + 5000 + KEEP_ENDED_MS


def test_tick_without_changes_rewrites_the_timer() -> None:
    decision = next_of(begun().loaded, Tick(), now=NOW + 1)
    assert ("ZADD", "p:sfc:timers", NOW + 5000, "J1") in decision.commit.operations


def test_ignored_signal_makes_no_decision() -> None:
    assert isinstance(decide(CONTEXT, begun().loaded, (), Answer("J1/c/z/1", ok=True), None, NOW), Ignored)
    assert isinstance(decide(CONTEXT, finished().loaded, (), Tick(), None, NOW), Ignored)


@pytest.mark.parametrize(
    ("signal", "cause", "expected"),
    [
        (Pause(), Cause.PAUSE, JobStatus(JobState.INTERRUPTED, SubState.SUSPENDED)),
        (Stop(), Cause.STOP, JobStatus(JobState.ENDED, SubState.CLOSED)),
        (Abort(), Cause.ABORT, JobStatus(JobState.ABORTED)),
    ],
)
def test_method_changes_job_and_run_together(signal: Signal, cause: Cause, expected: JobStatus) -> None:
    remark = (LocalizedText(text="lunch"),)
    after = next_of(begun().loaded, signal, MethodRequest(cause, remark)).loaded.job
    assert after.status == expected
    assert after.comment == remark


def test_method_not_allowed_in_the_job_state_is_refused() -> None:
    assert decide(CONTEXT, begun().loaded, (), Resume(), MethodRequest(Cause.RESUME), NOW) == NotAllowed()


def test_a_resumed_job_that_ends_at_once_passes_through_running() -> None:
    loaded = next_of(begun().loaded, Answer("J1/c/a/1", ok=True)).loaded
    loaded = next_of(loaded, Pause(), MethodRequest(Cause.PAUSE)).loaded
    loaded = next_of(loaded, Answer("J1/c/b/1", ok=True)).loaded
    decision = next_of(loaded, Resume(), MethodRequest(Cause.RESUME))
    assert decision.loaded.job.status == JobStatus(JobState.ENDED, SubState.COMPLETED)
    noted = [operation for operation in decision.commit.operations if CONTEXT.keys.joborder_changes(SCOPE) in operation]
    assert ["Resume" in row for row in noted] == [True, False]
    assert ["Complete" in row for row in noted] == [False, True]


def test_a_paused_job_has_no_deadline_until_it_is_resumed() -> None:
    paused = next_of(begun().loaded, Pause(), MethodRequest(Cause.PAUSE), NOW + 1000)
    assert paused.due is None
    assert next_of(paused.loaded, Resume(), MethodRequest(Cause.RESUME), NOW + 9000).due == NOW + 13_000
