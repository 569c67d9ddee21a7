"""Decides what a step of the clock changes about the schedule of a flow; pure."""

from typing import Final

from msgspec.structs import replace

from edge.features.flows.plan import Plan
from edge.features.flows.record import FlowRecord, FlowStatus
from edge.features.flows.schedule import Once, Schedule, count_between, first_due, latest_due, next_due

_SAME_STEP_MS: Final = 100
_SAME_STEP_WITHIN_MS: Final = 30_000


def follow_step(before: FlowRecord, plan: Plan, step: int, now: int) -> FlowRecord:
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
