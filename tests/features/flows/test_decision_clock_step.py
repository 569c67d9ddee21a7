"""A clock step repeats or skips at most one cycle of a flow; the schedule then follows the new time."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from edge.features.flows import decision
from edge.features.flows.cycle import NodeStatus, NodeTask
from edge.features.flows.decision import due_after_step, follow_step
from edge.features.flows.schedule import parse_schedule
from edge.features.flows.state import FlowRecord, FlowStatus
from tests.features.flows.documents import flow, node, plan_of

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BEGIN = 20_000 * DAY + 8 * HOUR


def plan(**members: Any) -> Any:
    return plan_of(flow([node("a", "constant", value=1)], **members))


@pytest.mark.parametrize(
    ("schedule", "due", "step", "now", "expected"),
    [
        ({"interval_seconds": 60}, 600_000, -1, 599_000, 600_000),
        ({"interval_seconds": 60}, 600_000, -59_000, 541_500, 600_000),
        ({"interval_seconds": 60}, 600_000, -60_000, 500_000, 540_000),
        ({"interval_seconds": 60}, 600_000, -100_000, 499_000, 540_000),
        ({"interval_seconds": 60}, 600_000, 5_000, 599_000, 600_000),
        ({"interval_seconds": 60}, 600_000, 3_600_000, 4_195_000, 4_200_000),
        ({"interval_seconds": 60}, 600_000, 3_630_000, 4_215_000, 4_200_000),
        ({"shifts": ["06:00"]}, DAY + 6 * HOUR, -5000, 6 * HOUR - 2000, DAY + 6 * HOUR),
        ({"shifts": ["06:00", "14:00"]}, 22 * HOUR, -8 * HOUR, 13 * HOUR, 14 * HOUR),
        ({"shifts": ["06:00"]}, 6 * HOUR, 30_000, 6 * HOUR + 20_000, 6 * HOUR),
        ({"cron": "0 6 * * *"}, 6 * HOUR, 300 * DAY, 300 * DAY + 10 * HOUR, 300 * DAY + 6 * HOUR),
        ({"interval_seconds": 0}, 600_000, -1000, 599_500, 599_500),
        ({"interval_seconds": 0}, 600_000, 1000, 600_500, 600_000),
    ],
)
def test_due_time_is_corrected_after_a_clock_step(
    schedule: dict[str, Any], due: int, step: int, now: int, expected: int
) -> None:
    assert due_after_step(parse_schedule(schedule), due, step, now) == expected


def run_through(document: dict[str, Any], steps: Sequence[tuple[int, int]], until: int, takes: int) -> FlowRecord:
    """Run a flow in a clock that steps at instants of elapsed time; two gateways follow each step."""
    found = plan(**document)
    record = decision.start(decision.register(None, found, "{}", BEGIN), found, BEGIN)
    offset, left, running, ends = BEGIN, list(steps), None, 0
    for elapsed in range(0, until, 500):
        if left and elapsed >= left[0][0]:
            step = left.pop(0)[1]
            offset += step
            for later in (0, 200):
                record = follow_step(record, found, offset + elapsed + later, step)
        now = offset + elapsed
        if running and elapsed >= ends:
            ended = changed(running.cycle, tasks={"a": NodeTask(NodeStatus.COMPLETED, attempts=1)})
            record, running = decision.end_cycle(record, ended, found, now), None
        if record.next_at is not None and record.next_at <= now:
            record, running = decision.begin_cycle(record, found, "edge", now)
            ends = elapsed + takes
    return record


@given(
    st.lists(
        st.tuples(st.integers(0, 3600).map(lambda second: second * SECOND), st.integers(-5000, 5000)),
        max_size=4,
        unique_by=lambda pair: pair[0],
    ).map(lambda pairs: [(at, seconds * SECOND) for at, seconds in sorted(pairs)]),
    st.sampled_from([0, 2 * SECOND]),
    st.booleans(),
)
def test_clock_step_repeats_or_skips_at_most_one_cycle(
    steps: Sequence[tuple[int, int]],
    takes: int,
    catch_up: bool,  # noqa: FBT001 - drawn by Hypothesis
) -> None:
    """Over an hour a flow has a cycle a minute, one more or less for each step."""
    flow_record = run_through({"interval_seconds": 60, "catch_up": catch_up}, steps, HOUR, takes)
    assert abs(flow_record.last_cycle + 1 - 60) <= 1 + len(steps)
    assert flow_record.missed <= len(steps)


@pytest.mark.parametrize("step", [-3 * HOUR, -30 * SECOND, 30 * SECOND, 9 * HOUR])
@pytest.mark.parametrize("at", [2 * HOUR - 10 * SECOND, 2 * HOUR + 10 * SECOND])
def test_shift_report_runs_once_despite_a_clock_step(step: int, at: int) -> None:
    """The flow of one report a day is at 10:00, two hours after the begin; the clock steps just before or after."""
    flow_record = run_through({"shifts": ["10:00"]}, [(at, step)], 3 * HOUR, 0)
    assert flow_record.last_cycle in ((-1, 0) if step == -3 * HOUR and at < 2 * HOUR else (0,))


@pytest.mark.parametrize(("step", "next_at"), [(-90 * MINUTE, 31 * MINUTE), (90 * MINUTE, 211 * MINUTE)])
def test_clock_step_during_a_cycle_moves_the_next_cycle(step: int, next_at: int) -> None:
    """An instant that the step jumped over is not missed."""
    every_minute = plan()
    waiting = changed(decision.start(decision.register(None, every_minute, "{}", 5), every_minute, 5))
    begun, record = decision.begin_cycle(waiting, every_minute, "edge", 120 * MINUTE)
    stepped = follow_step(begun, every_minute, 120 * MINUTE + step + 1, step)
    ended = changed(record.cycle, tasks={"a": NodeTask(NodeStatus.COMPLETED, attempts=1)})
    after = decision.end_cycle(stepped, ended, every_minute, 120 * MINUTE + step + 2)
    assert (after.next_at, after.resume_at, after.missed - begun.missed) == (next_at, None, 0)


def test_stopped_flow_ignores_a_clock_step() -> None:
    stopped = FlowRecord(flow_id="f", document="{}", created_at=1, status=FlowStatus.STOPPED, last_at=5)
    assert follow_step(stopped, plan(), 5, -HOUR) is stopped


def test_cycles_overdue_at_a_clock_step_are_missed() -> None:
    found = plan(catch_up=True)
    behind = FlowRecord(
        flow_id="f", document="{}", created_at=1, status=FlowStatus.RUNNING, last_at=9 * MINUTE, next_at=10 * MINUTE
    )
    after = follow_step(behind, found, 75 * MINUTE, HOUR)
    assert (after.next_at, after.missed) == (75 * MINUTE, 5)
    assert follow_step(after, found, 75 * MINUTE + 1, HOUR) is after
