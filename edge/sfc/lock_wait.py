"""Decides which locks a run keeps and for which it waits, after its transitions have been tested."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from edge.sfc.draft import Draft
from edge.sfc.net import Net, NetTransition
from edge.sfc.run_locks import NO_LOCKS, RunLocks


def needed_locks(net: Net, steps: frozenset[str] | set[str]) -> frozenset[str]:
    """Return the locks of some steps."""
    return frozenset().union(*(net.steps[name].locks for name in steps))


def update_locks(draft: Draft, waiting: Sequence[NetTransition]) -> None:
    """Drop the locks that no step needs any more, and wait for those that keep transitions from clearing.

    A wait for the same steps goes on: its age and its deadline stay.
    """
    before = draft.locks
    if not waiting and before is NO_LOCKS:
        return
    active = needed_locks(draft.net, draft.active)
    entering = tuple(sorted({target for transition in waiting for target in transition.targets}))
    wanted = needed_locks(draft.net, set(entering)) - active
    goes_on = bool(before.entering) and set(before.entering).issubset(entering)
    # A lock of a step that was left is released before the run waits: it never waits with what it has not to hold.
    kept = active | wanted if goes_on else active
    held = tuple(text for text in before.held if text in kept)
    forced = tuple(net_transition.index for net_transition in waiting if net_transition.index in before.forced)
    after = RunLocks(held=held, forced=forced)
    if waiting:
        added = [name for name in entering if not goes_on or name not in before.entering]
        limits = [draft.now + limit for name in added if (limit := draft.net.steps[name].lock_timeout_ms)]
        if goes_on and before.deadline is not None:
            limits.append(before.deadline)
        since = before.since if goes_on else draft.now
        after = RunLocks(held, entering, tuple(sorted(wanted)), since, min(limits, default=None), forced)
    if after != before:
        draft.locks = after


def force_when_held(draft: Draft, transition: NetTransition) -> bool:
    """Return whether the run holds the locks of a forced transition; else remember it until it does."""
    if transition.locks.issubset(draft.locks.held):
        return True
    draft.locks = replace(draft.locks, forced=(*draft.locks.forced, transition.index))
    return False


def lock_timeout(draft: Draft) -> str | None:
    """Return the error of a run that has waited too long for its locks; None while it may wait."""
    locks = draft.locks
    if locks.deadline is None or locks.deadline > draft.at:
        return None
    named = ", ".join(map(repr, locks.missing))
    steps = ", ".join(map(repr, locks.entering))
    return f"step {steps}: lock {named} was not free within its lock_timeout_seconds"
