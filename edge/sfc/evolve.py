"""Clears transitions until nothing clears, and ends the run when it is completed or has failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from edge.expression.value import EvaluationError
from edge.foundation.text import Text
from edge.sfc.action import ended_association, on_activated, on_deactivated, origin_of, start_action
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Moment, Net, NetAction, NetTransition
from edge.sfc.run import NO_LOCKS, UNSUCCESSFUL, ActionState, Outcome, RunLocks, StepState
from edge.sfc.signal import StepChange
from edge.sfc.view import Draft, left_failures, remedies


def needed_locks(net: Net, steps: frozenset[str] | set[str]) -> frozenset[str]:
    """Return the locks of some steps."""
    return frozenset().union(*(net.steps[name].locks for name in steps))


def update_locks(draft: Draft, waiting: Sequence[NetTransition]) -> None:
    """Drop the locks that no step needs any more, and wait for those that keep transitions from clearing.

    A wait for the same steps continues: its age and its deadline stay.
    """
    before = draft.locks
    if not waiting and before is NO_LOCKS:
        return
    active = needed_locks(draft.net, draft.active)
    entering = tuple(sorted({target for transition in waiting for target in transition.targets}))
    wanted = needed_locks(draft.net, set(entering)) - active
    continues = bool(before.entering) and set(before.entering).issubset(entering)
    # A lock of a step that was left is released before the run waits: it never waits with what it has not to hold.
    kept = active | wanted if continues else active
    held = tuple(text for text in before.held if text in kept)
    forced = tuple(net_transition.index for net_transition in waiting if net_transition.index in before.forced)
    after = RunLocks(held=held, forced=forced)
    if waiting:
        added = [name for name in entering if not continues or name not in before.entering]
        limits = [draft.now + limit for name in added if (limit := draft.net.steps[name].lock_timeout_ms)]
        if continues and before.deadline is not None:
            limits.append(before.deadline)
        since = before.since if continues else draft.now
        after = RunLocks(held, entering, tuple(sorted(wanted)), since, min(limits, default=None), forced)
    if after != before:
        draft.locks = after


def force_when_held(draft: Draft, transition: NetTransition) -> bool:
    """Return whether the run holds the locks of a forced transition; else remember it until it does."""
    if transition.locks.issubset(draft.locks.held):
        return True
    draft.locks = replace(draft.locks, forced=(*draft.locks.forced, transition.index))
    return False


def lock_timeout(draft: Draft) -> Text | None:
    """Return the error of a run that has waited too long for its locks; None while it may wait."""
    locks = draft.locks
    if locks.deadline is None or locks.deadline > draft.at:
        return None
    return Text.of(
        "step {steps}: lock {locks} was not free within its lock_timeout_seconds",
        steps=", ".join(map(repr, locks.entering)),
        locks=", ".join(map(repr, locks.missing)),
    )


# With more clearings at one instant a chart runs without end; the checker finds such loops only when conditions are
# constant.
MAX_SWEEPS: Final = 10_000


def settle(draft: Draft) -> None:
    """Advance the run until it is stable: clear transitions, judge failures, check completion.

    A run stands while a person must decide about a failure of a step that was left.

    Raises LivelockError when the run does not become stable.
    """
    draft.forget_decided_failures()
    left = left_failures(draft.net, draft)
    error = next((_failure_text(draft, key) for key in left if not remedies(draft.net, key)), None)
    if left and error is None:
        # A person decides first: what else has failed is judged then, and time alone clears nothing.
        draft.tested_at = draft.at
        return
    if draft.run.faults:
        draft.fresh.update(draft.active)
    if error is None:
        try:
            _run_to_completion(draft)
            error = _unhandled_failure(draft) or lock_timeout(draft)
        except _EvaluationError as fault:
            error = fault.text
    draft.clear_failures()
    if error is not None:
        end(draft, Outcome.FAILED, error)
    elif _is_completed(draft):
        _complete(draft)


class LivelockError(Exception):
    """The conditions of a chart let it run without end at one instant; `text` names the steps."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class _EvaluationError(Exception):
    """A condition that cannot be evaluated; `text` names its place and the reason."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def _run_to_completion(draft: Draft) -> None:
    """Clear transitions sweep by sweep; within a sweep all conditions see the same state (IEC 61131-3, 6.7.5)."""
    sensitive = draft.net.sensitive | draft.net.locking
    draft.tested_at = draft.at
    for _ in range(MAX_SWEEPS):
        looked_at = (draft.fresh & draft.active) | (draft.active & sensitive)
        draft.fresh.clear()
        clearing, waiting = _clearing(draft, looked_at)
        if not clearing:
            update_locks(draft, waiting)
            return
        for transition in clearing:
            for source in transition.sources:
                deactivate(draft, source)
        for transition in clearing:
            for target in transition.targets:
                activate(draft, target)
    steps = ", ".join(sorted(draft.active))
    raise LivelockError(Text.of("livelock: transitions clear for ever at one instant, last {steps}", steps=steps))


def _clearing(draft: Draft, steps: set[str]) -> tuple[list[NetTransition], list[NetTransition]]:
    """Choose the transitions that clear now, best rank first, none taking a step that another took.

    Those that lack only locks are returned too: they wait, and no transition of a lower rank takes their steps.
    """
    net, locks = draft.net, draft.locks
    if not draft.steps:
        candidates: Iterable[NetTransition] = (net.entry,)
    elif len(steps) == 1 and not locks.forced:
        candidates = net.steps[next(iter(steps))].outgoing
    else:
        net_transitions = {transition.index: transition for step in steps for transition in net.steps[step].outgoing}
        candidates = [
            net_transitions[index]
            for index in sorted(net_transitions, key=lambda index: (index not in locks.forced, index))
        ]
    taken: set[str] = set()
    clearing: list[NetTransition] = []
    waiting: list[NetTransition] = []
    for transition in candidates:
        sources = transition.sources
        if not draft.active.issuperset(sources) or not taken.isdisjoint(sources):
            continue
        if transition.index in locks.forced or _is_true(draft, transition):
            taken.update(sources)
            (clearing if transition.locks.issubset(locks.held) else waiting).append(transition)
    return clearing, waiting


def _is_true(draft: Draft, transition: NetTransition) -> bool:
    for step in transition.needs_done:
        if not draft.done(step):
            return False
    for condition in transition.conditions:
        try:
            if condition.evaluate(draft) is not True:
                return False
        except EvaluationError as error:
            raise _EvaluationError(
                Text.of(
                    "{place}: condition {condition!r}: {reason}",
                    place=transition.place,
                    condition=condition.text,
                    reason=error,
                )
            ) from None
    return True


def activate(draft: Draft, name: str) -> None:
    """Activate a step and its actions."""
    before = draft.steps.get(name)
    draft.put_step(name, StepState(active=True, activated_at=draft.now, count=before.count + 1 if before else 1))
    draft.active.add(name)
    draft.fresh.add(name)
    draft.changes.append(StepChange(name, active=True, at=draft.now))
    for action in draft.net.steps[name].entering:
        on_activated(draft, action)


def deactivate(draft: Draft, name: str) -> None:
    """Deactivate a step and its actions."""
    state = draft.steps[name]
    draft.put_step(
        name,
        StepState(activated_at=state.activated_at, count=state.count, elapsed_ms=state.t(draft.now)),
    )
    draft.active.discard(name)
    draft.changes.append(StepChange(name, active=False, at=draft.now))
    for action in draft.net.steps[name].actions:
        on_deactivated(draft, action)


def _unhandled_failure(draft: Draft) -> Text | None:
    """Return the error of a failure whose step no transition has left, and for which no person is waited."""
    for key in draft.faults:
        association = draft.associations.get(key)
        if association is None or key.is_left_behind or key in draft.net.held or association.state not in UNSUCCESSFUL:
            continue
        if association.step in draft.active and not draft.steps[association.step].completed:
            return _failure_text(draft, key)
    return None


def _failure_text(draft: Draft, key: AssociationKey) -> Text:
    association = draft.associations[key]
    return Text.of(
        "action {action!r} of step {step!r} {error}",
        action=association.action,
        step=association.step,
        error=association.error,
    )


def _is_completed(draft: Draft) -> bool:
    """Return whether only terminal steps are active, all done, and no falling pulse is unanswered."""
    return (
        bool(draft.steps)
        and draft.active <= draft.net.terminal
        and all(draft.done(step) for step in draft.active)
        and not any(
            draft.associations[key].awaits_outcome and draft.action_of(key).rule.sends is Moment.DEACTIVATION
            for key in draft.open
        )
    )


def _complete(draft: Draft) -> None:
    """End a run normally: what is set stays set, a delay is dropped, a limit that still runs ends now."""
    for key in draft.in_recipe_order(draft.open):
        association, action = draft.associations[key], draft.action_of(key)
        if association.state is ActionState.PENDING or association.state is ActionState.WAITING:
            draft.put(key, replace(association, state=ActionState.STOPPED, deadline=None, due=None, ended_at=draft.now))
        elif association.due is not None:
            draft.stop(action, association)
            draft.put(key, replace(association, due=None))
    draft.set_outcome(Outcome.COMPLETED, None)


def end(draft: Draft, outcome: Outcome, error: str | Text) -> None:
    """End a run before its recipe does: every outstanding command is stopped, every stored action reset."""
    setting = [key for key in draft.stored.values() if _is_in_effect(draft, key)]
    for key in draft.in_recipe_order(draft.open):
        association, action = draft.associations[key], draft.action_of(key)
        if action.rule.resets and association.awaits_outcome:
            continue
        limited = association.state is ActionState.COMPLETED and action.name in draft.net.resetting
        if not limited and origin_of(draft, key) == key:
            draft.stop(action, association)
        if association.state is ActionState.COMPLETED:
            draft.put(key, replace(association, due=None))
        else:
            draft.put(key, ended_association(association, ActionState.STOPPED, draft.now))
    for key in sorted(setting, key=lambda key: draft.net.actions[key].index):
        _reset(draft, draft.net.actions[key])
    for name in list(draft.stored):
        draft.clear_stored(name)
    draft.set_outcome(outcome, error)


def _is_in_effect(draft: Draft, key: AssociationKey) -> bool:
    """Return whether a stored action was started and has not ended: only then is there something to reset."""
    association, action = draft.associations[key], draft.net.actions[key]
    if association.state is ActionState.PENDING or association.state is ActionState.STOPPED:
        return False
    return not (action.rule.ends and association.state is ActionState.COMPLETED and association.due is None)


def _reset(draft: Draft, action: NetAction) -> None:
    """Send the reset command of a stored action; one without R has none."""
    for resetting in draft.net.resetting.get(action.name, ()):
        if not resetting.pull:
            start_action(draft, resetting)
            return
