"""Decides what happens to a flow: registration, start, stop, the begin and the end of a cycle, a step of the clock."""

from typing import Final

import msgspec
from msgspec.structs import replace

from edge.features.flows.cycle import Cycle, CycleStatus, new_cycle
from edge.features.flows.plan import Plan
from edge.features.flows.schedule import Once, Schedule, count_between, first_due, following_due, latest_due, next_due
from edge.features.flows.state import CycleRecord, FlowRecord, FlowStatus
from edge.foundation.text import Text

FEW_CYCLES: Final = 100
"""Ended cycles of a flow that are kept while the store is nearly full."""
_CYCLE_BYTES: Final = 700
_TASK_BYTES: Final = 450
"""About what a node task without its output takes in the store."""
_MOST_REMOVED: Final = 20
"""Ended cycles that are removed at once: after an upgrade, or in a store that fills, thousands may be too many."""


def register(before: FlowRecord | None, plan: Plan, document: str, now: int) -> FlowRecord:
    """Return a new flow, or one with a new document; a running flow keeps running by its new schedule."""
    if before is None:
        # A flow that was deleted and registered again must not have a revision it had before.
        return FlowRecord(flow_id=plan.id, document=document, created_at=now, revision=now)
    memory = {node: value for node, value in before.memory.items() if node in plan.nodes}
    next_at = before.next_at
    is_due = next_at is not None and next_at <= now
    if before.status is FlowStatus.RUNNING and not before.in_cycle and not is_due:
        next_at = _next_at(before, plan, now)
    return _changed(before, document=document, memory=memory, next_at=next_at)


def start(before: FlowRecord, plan: Plan, now: int) -> FlowRecord:
    """Return a flow whose cycles run from now on; a running flow is unchanged."""
    if before.status is FlowStatus.RUNNING:
        return before
    # A cycle that has not ended yet sets the next one at its end.
    next_at = None if before.in_cycle else first_due(plan.schedule, now)
    return _changed(before, status=FlowStatus.RUNNING, next_at=next_at, reason="")


def stop(before: FlowRecord, reason: str | Text) -> FlowRecord:
    """Return a flow without further cycles; its running cycle ends by itself. Only a running flow changes."""
    if before.status is not FlowStatus.RUNNING:
        return before
    return _changed(before, status=FlowStatus.STOPPED, next_at=None, reason=reason)


def begin_cycle(before: FlowRecord, plan: Plan, owner: str, now: int) -> tuple[FlowRecord, CycleRecord]:
    """Return a flow that is due with its next cycle, in which no node has started.

    If several due times have passed, only the last one runs a cycle and the others are missed; with `catch_up` none is
    missed.
    """
    due = now if before.next_at is None else before.next_at
    at = due if plan.catch_up else latest_due(plan.schedule, due, now)
    missed = count_between(plan.schedule, due - 1, at)
    cycle = new_cycle(plan, before.last_cycle + 1, at, before.memory)
    flow = _changed(
        before, last_cycle=cycle.number, last_at=at, next_at=None, in_cycle=True, missed=before.missed + missed
    )
    return flow, CycleRecord(cycle=cycle, document=before.document, owner=owner, started_at=now, revision=now)


def move_cycle(
    flow: FlowRecord, record: CycleRecord, cycle: Cycle, plan: Plan, now: int
) -> tuple[FlowRecord, CycleRecord]:
    """Return flow and record after a cycle has moved; `plan` is that of the present document of the flow."""
    moved = replace(record, cycle=cycle, revision=record.revision + 1)
    if cycle.status is CycleStatus.RUNNING:
        return flow, moved
    return end_cycle(flow, cycle, plan, now), replace(moved, ended_at=now)


def cycle_size(cycle: Cycle) -> int:
    """Return about how many bytes an ended cycle takes in the store."""
    outputs: int = sum(len(msgspec.json.encode(task.output)) for task in cycle.tasks.values())
    return _CYCLE_BYTES + _TASK_BYTES * len(cycle.tasks) + outputs


def expired_cycles(
    flow: FlowRecord, number: int, kept_cycles: int, kept_bytes: int, *, is_nearly_full: bool = False
) -> tuple[int, ...]:
    """Return the cycles to remove when a cycle begins: beyond `kept_cycles` (0: any number), or beyond `kept_bytes`.

    While the store `is_nearly_full`, few are kept. At most twenty at once, so that no commit is large, and a flow whose
    outputs have grown is below its bound again after a while.
    """
    most = max(1, kept_bytes // max(1, flow.cycle_bytes))
    if kept_cycles:
        most = min(most, kept_cycles)
    if is_nearly_full:
        most = min(most, FEW_CYCLES)
    first = flow.first_kept
    return tuple(range(first, min(first + _MOST_REMOVED, max(first, number - most))))


def lose_cycle(before: FlowRecord, now: int) -> FlowRecord:
    """Return a flow whose running cycle is not in the store any more."""
    return _changed(before, in_cycle=False, next_at=now if before.status is FlowStatus.RUNNING else None)


def end_cycle(before: FlowRecord, cycle: Cycle, plan: Plan, now: int) -> FlowRecord:
    """Return a flow whose cycle has ended; `plan` is that of its present document."""
    ended = {**before.ended, cycle.status: before.ended.get(cycle.status, 0) + 1}
    memory = {node: value for node, value in cycle.remembered().items() if node in plan.nodes}
    size = cycle_size(cycle)
    # Written rarely: a little less makes no difference.
    size = size if size > before.cycle_bytes or 2 * size < before.cycle_bytes else before.cycle_bytes
    after = _changed(before, ended=ended, memory=memory, in_cycle=False, cycle_bytes=size)
    if before.status is not FlowStatus.RUNNING:
        return replace(after, resume_at=None)
    if isinstance(plan.schedule, Once):
        return replace(after, status=FlowStatus.COMPLETED, resume_at=None)
    next_at = _next_at(after, plan, now)
    missed = 0
    if next_at is not None and not plan.catch_up:
        last = cycle.at if before.resume_at is None else before.resume_at - 1
        missed = count_between(plan.schedule, last, next_at)
    return replace(after, next_at=next_at, resume_at=None, missed=before.missed + missed)


def correct_schedule(before: FlowRecord, plan: Plan, now: int) -> FlowRecord:
    """Return a waiting flow with an earlier next cycle after the clock was set back by an unknown step, else the flow.

    A gateway decides this when it starts.
    """
    if before.next_at is None or before.last_at is None:
        return before
    next_at = following_due(plan.schedule, before.last_at, now)
    return before if next_at is None or next_at >= before.next_at else _changed(before, next_at=next_at)


def _next_at(flow: FlowRecord, plan: Plan, now: int) -> int | None:
    if flow.last_at is None:
        return first_due(plan.schedule, now)
    if flow.resume_at is not None:
        return first_due(plan.schedule, flow.resume_at if plan.catch_up else max(flow.resume_at, now))
    if plan.catch_up:
        return next_due(plan.schedule, flow.last_at, flow.last_at + 1)
    return following_due(plan.schedule, flow.last_at, now)


def _changed(flow: FlowRecord, **members: object) -> FlowRecord:
    return replace(flow, revision=flow.revision + 1, **members)


_SAME_STEP_MS: Final = 100
_SAME_STEP_WITHIN_MS: Final = 30_000


def follow_step(before: FlowRecord, plan: Plan, now: int, step: int) -> FlowRecord:
    """Return a flow after the clock stepped to now; the second of two gateways changes nothing for the same step.

    The step itself misses no cycle. What was overdue before it and is not caught up counts as missed.
    """
    if before.status is not FlowStatus.RUNNING or _has_followed(before, step, now):
        return before
    due = before.next_at
    if before.in_cycle:
        due = before.resume_at
        if due is None and before.last_at is not None:
            due = next_due(plan.schedule, before.last_at, before.last_at)
    moved = None if due is None else due_after_step(plan.schedule, due, step, now)
    if due is None or moved == due:
        return before
    followed = (step, now)
    if before.in_cycle:
        return replace(before, resume_at=moved, followed_step=followed, revision=before.revision + 1)
    missed = before.missed + count_between(plan.schedule, due - 1, now - step)
    return replace(before, next_at=moved, missed=missed, followed_step=followed, revision=before.revision + 1)


def _has_followed(flow: FlowRecord, step: int, now: int) -> bool:
    """Return whether another gateway has followed this step; each measures the clock of the store for itself."""
    if flow.followed_step is None:
        return False
    followed, at = flow.followed_step
    return abs(step - followed) <= _SAME_STEP_MS and abs(now - at) <= _SAME_STEP_WITHIN_MS


def due_after_step(schedule: Schedule, due_ms: int, step_ms: int, now_ms: int) -> int | None:
    """Return when a cycle is due after the clock stepped to now; it was due at an instant of the old time.

    The cycle does not come earlier than it would have by the time that really passes, and less than one period later.
    The exception is an instant that a step forward jumped over: it counts at once unless the next one comes sooner.
    """
    if step_ms < 0:
        return first_due(schedule, max(now_ms, due_ms + step_ms))
    if due_ms > now_ms:
        return due_ms
    following = first_due(schedule, now_ms + 1)
    waited_ms = due_ms - (now_ms - step_ms)
    if following is None or isinstance(schedule, Once) or following - now_ms > waited_ms:
        return latest_due(schedule, due_ms, now_ms)
    return following
