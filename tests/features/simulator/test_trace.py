"""Tests of a trace: times from the zero of its recorder, and the worst end of several jobs."""

from msgspec.structs import replace

from edge.features.simulator.trace import TraceRecorder
from edge.sfc.run import Outcome, new_run
from edge.sfc.signal import Phase, StepChange


def test_trace_times_start_at_zero_and_stops_do_not_count_as_commands() -> None:
    record = TraceRecorder(zero=1000)
    counts = [record.command(1500, "J", "a", "a.v1", phase, 1) for phase in (Phase.START, Phase.STOP, Phase.START)]
    record.changes("J", [StepChange("A", active=True, at=1250)])
    assert counts == [1, 1, 2]
    assert [command["t"] for command in (*record.commands, *record.steps)] == [0.5, 0.5, 0.5, 0.25]


def test_worst_end_of_several_jobs_is_reported_with_each_error() -> None:
    run = replace(new_run("J1", "s", "r", {}), outcome=Outcome.COMPLETED, ended_at=3000)
    failed = replace(run, outcome=Outcome.FAILED, error="no air", ended_at=5000)
    trace = TraceRecorder(zero=1000).trace({"J1": run, "J2": failed}, {}, 6000)
    assert (trace.final, trace.error, trace.end) == ("failed", "J2: no air", 4.0)
    assert trace.until == 5.0
    assert TraceRecorder().trace({"J1": run, "J2": replace(failed, ended_at=None)}, {}, 6000).end is None
