"""State changes of a flow at registration, start, stop, and at begin and end of its cycles."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from edge.features.flows import decision
from edge.features.flows.cycle import Cycle, CycleStatus, NodeStatus, NodeTask
from edge.features.flows.state import FlowRecord, FlowStatus
from tests.features.flows.documents import flow, node, plan_of

MINUTE = 60_000


def plan(**members: Any) -> Any:
    return plan_of(flow([node("a", "constant", value=1)], **members))


EVERY_MINUTE = plan()
NEW = decision.register(None, EVERY_MINUTE, "{}", 5)
RUNNING = decision.start(NEW, EVERY_MINUTE, 5)


def ended(cycle: Cycle, status: NodeStatus = NodeStatus.COMPLETED, memory: Any = None) -> Cycle:
    return changed(cycle, tasks={"a": NodeTask(status, attempts=1, memory=memory)})


def test_registered_flow_waits_for_its_start() -> None:
    assert (NEW.status, NEW.next_at, NEW.last_cycle) == (FlowStatus.REGISTERED, None, -1)


def test_started_flow_is_due_at_its_first_scheduled_instant() -> None:
    assert (RUNNING.status, RUNNING.next_at) == (FlowStatus.RUNNING, MINUTE)
    assert decision.start(RUNNING, EVERY_MINUTE, 99) is RUNNING


def test_stopped_flow_is_never_due() -> None:
    stopped = decision.stop(RUNNING, "night")
    assert (stopped.status, stopped.next_at, stopped.reason) == (FlowStatus.STOPPED, None, "night")
    assert decision.stop(stopped, "again") is stopped
    assert decision.start(stopped, EVERY_MINUTE, 5).reason == ""


@pytest.mark.parametrize(("now", "next_at"), [(10, 1000), (MINUTE, MINUTE)])
def test_new_document_applies_its_schedule_unless_a_cycle_is_due(now: int, next_at: int) -> None:
    after = decision.register(RUNNING, plan(interval_seconds=1), "{1}", now)
    assert (after.document, after.status, after.next_at) == ("{1}", FlowStatus.RUNNING, next_at)
    assert decision.register(NEW, plan(interval_seconds=1), "{1}", now).next_at is None


def test_new_document_drops_memory_of_removed_nodes() -> None:
    before = changed(NEW, memory={"a": 1, "b": 2})
    assert decision.register(before, EVERY_MINUTE, "{}", 5).memory == {"a": 1}


@pytest.mark.parametrize(
    ("now", "catch_up", "at", "missed"),
    [(MINUTE + 7, False, MINUTE, 0), (4 * MINUTE + 7, False, 4 * MINUTE, 3), (4 * MINUTE, True, MINUTE, 0)],
)
def test_cycle_begins_at_the_last_scheduled_instant(now: int, at: int, missed: int, *, catch_up: bool) -> None:
    after, record = decision.begin_cycle(RUNNING, plan(catch_up=catch_up), "edge", now)
    assert (record.cycle.at, record.cycle.number, record.owner, record.started_at) == (at, 0, "edge", now)
    assert (after.missed, after.in_cycle, after.next_at, after.last_at) == (missed, True, None, at)


@pytest.mark.parametrize(("catch_up", "next_at", "missed"), [(False, 4 * MINUTE, 2), (True, 2 * MINUTE, 0)])
def test_instants_during_a_cycle_are_missed(next_at: int, missed: int, *, catch_up: bool) -> None:
    begun, record = decision.begin_cycle(RUNNING, EVERY_MINUTE, "edge", MINUTE)
    after = decision.end_cycle(begun, ended(record.cycle), plan(catch_up=catch_up), 3 * MINUTE + 1)
    assert (after.next_at, after.missed, after.in_cycle) == (next_at, missed, False)
    assert after.ended == {CycleStatus.COMPLETED: 1}


def test_flow_stopped_in_mid_cycle_is_not_due_again() -> None:
    begun, record = decision.begin_cycle(RUNNING, EVERY_MINUTE, "edge", MINUTE)
    after = decision.end_cycle(decision.stop(begun, "x"), ended(record.cycle), EVERY_MINUTE, MINUTE)
    assert (after.status, after.next_at) == (FlowStatus.STOPPED, None)


def test_flow_started_again_in_mid_cycle_is_due_after_it() -> None:
    begun, record = decision.begin_cycle(RUNNING, EVERY_MINUTE, "edge", MINUTE)
    again = decision.start(decision.stop(begun, "x"), EVERY_MINUTE, MINUTE)
    assert again.next_at is None
    assert decision.end_cycle(again, ended(record.cycle), EVERY_MINUTE, MINUTE).next_at == 2 * MINUTE


def test_flow_of_one_cycle_is_completed() -> None:
    once = plan(interval_seconds=0)
    begun, record = decision.begin_cycle(decision.start(NEW, once, 7), once, "edge", 9)
    assert record.cycle.at == 7
    after = decision.end_cycle(begun, ended(record.cycle, NodeStatus.FAILED), once, 10)
    assert (after.status, after.next_at, after.ended) == (FlowStatus.COMPLETED, None, {CycleStatus.FAILED: 1})


def test_end_of_a_cycle_keeps_the_memory_of_nodes() -> None:
    begun, record = decision.begin_cycle(RUNNING, EVERY_MINUTE, "edge", MINUTE)
    after = decision.end_cycle(begun, ended(record.cycle, memory=[3]), EVERY_MINUTE, MINUTE)
    assert after.memory == {"a": [3]}


def test_progress_of_a_cycle_does_not_change_the_flow_record() -> None:
    begun, record = decision.begin_cycle(RUNNING, EVERY_MINUTE, "edge", MINUTE)
    running = changed(record.cycle, tasks={"a": NodeTask(NodeStatus.RUNNING, attempts=1)})
    same, moved = decision.move_cycle(begun, record, running, EVERY_MINUTE, MINUTE)
    assert same is begun
    assert (moved.ended_at, moved.revision) == (None, record.revision + 1)
    after, last = decision.move_cycle(begun, moved, ended(record.cycle), EVERY_MINUTE, MINUTE + 5)
    assert (after.in_cycle, last.ended_at) == (False, MINUTE + 5)


@pytest.mark.parametrize(("now_min", "next_min"), [(2, 2), (9, 9), (9.5, 11), (10, 11), (10.5, 11)])
def test_large_clock_step_back_reschedules_the_next_cycle(now_min: float, next_min: int) -> None:
    waiting = changed(RUNNING, last_at=10 * MINUTE, last_cycle=3, next_at=11 * MINUTE)
    after = decision.correct_schedule(waiting, EVERY_MINUTE, round(now_min * MINUTE))
    assert after.next_at == next_min * MINUTE


def test_flow_that_never_ran_needs_no_correction() -> None:
    assert decision.correct_schedule(RUNNING, EVERY_MINUTE, 0) is RUNNING
    assert decision.correct_schedule(NEW, EVERY_MINUTE, 0) is NEW


@pytest.mark.parametrize(("status", "next_at"), [(FlowStatus.RUNNING, 9), (FlowStatus.STOPPED, None)])
def test_flow_without_its_cycle_record_continues(status: FlowStatus, next_at: int | None) -> None:
    lost = FlowRecord(flow_id="f", document="{}", created_at=1, status=status, in_cycle=True)
    after = decision.lose_cycle(lost, 9)
    assert (after.in_cycle, after.next_at) == (False, next_at)


def test_cycles_are_kept_by_time_unless_memory_or_a_number_bounds_them() -> None:
    flow = changed(RUNNING, first_kept=5, cycle_bytes=1000)
    assert decision.expired_cycles(flow, 10_000, 0, 32 << 20) == ()
    assert decision.expired_cycles(flow, 10_000, 100, 32 << 20) == tuple(range(5, 25))
    assert decision.expired_cycles(flow, 107, 100, 32 << 20) == (5, 6)
    assert decision.expired_cycles(flow, 106, 0, 100_000) == (5,)
    assert decision.expired_cycles(flow, 10_000, 0, 32 << 20, is_nearly_full=True) == tuple(range(5, 25))
    assert decision.expired_cycles(flow, 3, 100, 1) == ()


def test_flow_of_an_earlier_release_is_soon_below_its_bound() -> None:
    """It kept 100 cycles, and its record does not say so: 100,000 could be there."""
    flow, kept = changed(RUNNING, first_kept=900_000, cycle_bytes=2_000), 0
    for number in range(1_000_001, 1_030_001):
        removed = decision.expired_cycles(flow, number, 0, 32 << 20)
        flow = changed(flow, first_kept=flow.first_kept + len(removed))
        kept = max(kept, number - max(flow.first_kept, 999_900))
    assert kept <= (32 << 20) // 2_000 + 1


def test_flow_remembers_about_how_much_a_cycle_takes() -> None:
    sizes = []
    flow = changed(RUNNING, in_cycle=True)
    for output in ("x" * 10, "x" * 5_000, "x" * 4_000, "x"):
        cycle = Cycle(flow.flow_id, 0, 0, {"a": NodeTask(NodeStatus.COMPLETED, output)})
        flow = changed(decision.end_cycle(flow, cycle, EVERY_MINUTE, 1), in_cycle=True)
        sizes.append(flow.cycle_bytes)
    assert sizes[0] < 2_000
    assert sizes[1] == sizes[2] > 5_000
    assert sizes[3] < 2_000
