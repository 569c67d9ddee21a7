"""Steps that take much longer than usual are reported once per activation."""

from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from edge.features.telemetry.step_times import MIN_RUNS, OverdueStep, StepTimes
from edge.model.isa95 import JobOrder, WorkMaster
from edge.sfc.run import Outcome, StepState, new_run
from edge.sfc.signal import StepChange


def loaded(job_id: str, state: StepState, **others: Any) -> Any:
    active = frozenset({"A"} if state.active else ())
    run = replace(new_run(job_id, "s", "r", {}), steps={"A": state}, active=active, **others)
    order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM"),))
    return SimpleNamespace(job=SimpleNamespace(job_id=job_id, order=order), stored=SimpleNamespace(run=run))


def learn(times: StepTimes, seconds: float, count: int = MIN_RUNS, job_id: str = "J") -> None:
    for number in range(count):
        left = StepState(0, 1, active=False, elapsed_ms=round(seconds * 1000) + number)
        change = StepChange("A", active=False, at=0)
        times.watch(SimpleNamespace(loaded=loaded(job_id, left), steps=(change,)))  # type: ignore[arg-type]


def test_step_is_overdue_after_twice_its_usual_time() -> None:
    times = StepTimes()
    learn(times, 10)
    runs = {"J1": loaded("J1", StepState(1_000, 1, active=True))}
    assert list(times.overdue(runs, 20_000)) == []
    assert list(times.overdue(runs, 21_100)) == [OverdueStep("J1", "A", 20.1, 10.0)]
    assert list(times.overdue(runs, 99_000)) == []
    again = {"J1": loaded("J1", StepState(100_000, 2, active=True))}
    assert [each.step for each in times.overdue(again, 200_000)] == ["A"]


def test_step_with_few_runs_or_in_a_pause_is_not_overdue() -> None:
    times = StepTimes()
    learn(times, 10, MIN_RUNS - 1)
    active = StepState(0, 1, active=True)
    assert list(times.overdue({"J1": loaded("J1", active)}, 99_000)) == []
    learn(times, 10, 1)
    assert list(times.overdue({"J1": loaded("J1", active, paused_at=5)}, 99_000)) == []
    assert list(times.overdue({"J1": loaded("J1", active, outcome=Outcome.ABORTED)}, 99_000)) == []
    assert list(times.overdue({"J1": loaded("J1", active)}, 99_000))


def test_duration_of_an_overdue_step_does_not_change_the_usual_time() -> None:
    times = StepTimes()
    learn(times, 10)
    assert list(times.overdue({"J1": loaded("J1", StepState(0, 1, active=True))}, 99_000))
    learn(times, 99, 1, job_id="J1")
    assert [each.usual for each in times.overdue({"J2": loaded("J2", StepState(0, 1, active=True))}, 99_000)] == [10.0]
