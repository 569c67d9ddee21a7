"""Changes between two reads are printed completely and in a readable order."""

from edge.cli.jobs.watch import ActionChanged, StateChanged, StepChanged, format_event, ordered_events, run_events
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.sfc.identifiers import parse_association_key
from edge.sfc.run import ActionState, Association, Run, StepState, new_run
from edge.store.changes import Change


def run(steps: dict[str, StepState], associations: dict[str, Association] | None = None) -> Run:
    empty = new_run("J1", "s", "r", {})
    fields = {name: getattr(empty, name) for name in ("job_id", "scope", "run_id", "parameters")}
    return Run(
        **fields,
        steps=steps,
        associations={parse_association_key(key): association for key, association in (associations or {}).items()},
    )


def change(cause: Cause, status: JobStatus) -> Change:
    return Change("1-0", "s", "J1", cause, status, at=1)


def formatted(before: Run | None, after: Run) -> list[str]:
    return [format_event(event).split(maxsplit=2)[2] for event in run_events(before, after)]


def test_events_at_the_same_instant_are_ordered_by_cause() -> None:
    before = run({"a": StepState(active=True, activated_at=1, count=1)}, {"x@a": Association(action="x", step="a")})
    after = run(
        {
            "a": StepState(activated_at=1, count=1, elapsed_ms=4),
            "b": StepState(activated_at=5, count=1),
            "c": StepState(active=True, activated_at=5, count=1),
        },
        {
            "y@c": Association(action="y", step="c", state=ActionState.DISPATCHED, attempt=1, armed_at=5),
            "x@a": Association(action="x", step="a", state=ActionState.COMPLETED, attempt=1, armed_at=1, ended_at=5),
        },
    )
    assert formatted(before, after) == [
        "✓ x of a: completed",
        "■ a",
        "▶ b",
        "■ b",
        "▶ c",
        "▶ y of c: dispatched",
    ]


def test_step_entered_again_between_two_reads_is_reported_again() -> None:
    before = run({"a": StepState(active=True, activated_at=1, count=1)})
    after = run({"a": StepState(active=True, activated_at=9, count=2)})
    assert formatted(before, after) == ["▶ a  for the 2. time"]


def test_unchanged_state_is_not_reported() -> None:
    same = run({"a": StepState(active=True, activated_at=1, count=1)}, {"x@a": Association(action="x", step="a")})
    assert run_events(same, same) == []


def test_job_start_precedes_and_job_end_follows_its_steps() -> None:
    started = change(Cause.RUN, JobStatus(JobState.RUNNING))
    ended = change(Cause.COMPLETE, JobStatus(JobState.ENDED, SubState.COMPLETED))
    happened = ordered_events([started, ended], None, run({"a": StepState(active=True, activated_at=1, count=1)}))
    assert [type(item) for item in happened] == [StateChanged, StepChanged, StateChanged]


def test_a_result_and_an_error_are_printed_without_control_characters() -> None:
    done = ActionChanged(
        at=None,
        job_order_id="J1",
        action="x",
        step="a",
        state=ActionState.FAILED,
        attempt=2,
        result={"torque": 1},
        error="failed: \x1b[2Jno\nbolt",
    )
    assert format_event(done).strip() == 'action  ✗ x of a: failed:  [2Jno bolt, attempt 2  {"torque":1}'
