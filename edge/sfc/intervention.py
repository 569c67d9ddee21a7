"""Decides about interventions of a person: retry or skip an action, force a transition, complete a step, resolve.

A recipe lists what it allows. An intervention names what is active now; it never starts what the chart has not reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.action import failed, on_completed, on_deactivated, on_failed, origin_of, repeat, skip
from edge.sfc.evolve import activate, deactivate, force_when_held, settle
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Moment, Net, NetTransition
from edge.sfc.run import UNSUCCESSFUL, ActionState, Association, InterventionNote, Outcome, Run
from edge.sfc.signal import Ignored, IgnoredKind, Intervene, PersonAnswer, Resolution, Resolve, kind_text
from edge.sfc.view import Draft, left_failures, remedies, stands

MAX_INTERVENTIONS: Final = 100
"""The number of interventions that a run keeps."""

_OPEN: Final = frozenset({ActionState.DISPATCHED, ActionState.WAITING})


class _Target(Struct, frozen=True):
    """What an intervention is about: as text, as a mark of this very activation, and how it is applied."""

    subject: str | Text
    mark: str
    apply: Callable[[str], None]
    """Called with who decided and the reason."""


def intervene(draft: Draft, signal: Intervene) -> Ignored | None:
    """Apply an intervention, or keep it until a second person confirms it."""
    if signal.kind in _MOVES and draft.paused_at is not None:
        return Ignored(IgnoredKind.PAUSED, "the job is paused: resume it first")
    return _decide(draft, signal, _find(draft, signal))


def answer(draft: Draft, key: AssociationKey, signal: PersonAnswer) -> Ignored | None:
    """Complete the open command of an association with the answer of a person, or keep it for the second one."""
    key = origin_of(draft, key)
    association = draft.associations[key]

    def apply(by: str) -> None:
        draft.put(key, replace(association, resolved_by=by))
        on_completed(draft, key, signal.data)

    if signal.second is not None:
        return _decide(
            draft,
            signal,
            _Target(Text.of("{action} of {step}", action=key.action, step=key.step), signal.command_id, apply),
        )
    apply(signal.by)
    _settle(draft)
    return None


def _decide(draft: Draft, signal: Intervene | Resolve | PersonAnswer, target: _Target | Ignored) -> Ignored | None:
    """Apply a decision to its target, or keep it until a second person confirms it."""
    if isinstance(target, Ignored):
        return target
    intervention_note = InterventionNote(signal.kind, target.subject, signal.by, signal.reason, draft.now)
    number = max(draft.interventions, default=0) + 1
    if signal.second is not None:
        number = _asked_before(draft, signal, target) or number
        before = draft.interventions.get(number)
        if before is None or person_of(before.by) == person_of(signal.by):
            until = draft.now + signal.second.within_ms
            _keep(draft, number, replace(intervention_note, until=until, mark=target.mark, data=signal.data))
            return None
        if not signal.second.has_login:
            reason = Text.of(
                "{by} asked for it: the second person confirms it with a login at the gateway", by=before.by
            )
            return Ignored(IgnoredKind.NEEDS_SECOND, reason)
        if before.data != signal.data:
            return Ignored(IgnoredKind.NEEDS_SECOND, Text.of("{by} asked for it with another result", by=before.by))
        confirmed = {"second": signal.by, "second_at": draft.now, "second_reason": signal.reason}
        intervention_note = replace(before, until=None, mark="", data=None, **confirmed)
    _keep(draft, number, intervention_note)
    target.apply(_who(intervention_note))
    _settle(draft)
    return None


def _settle(draft: Draft) -> None:
    """Advance the run, unless it is paused or has ended."""
    if draft.paused_at is None and draft.outcome is Outcome.RUNNING:
        settle(draft)


def person_of(name: str) -> str:
    """Return the person in `anna (root)`, where the account of the system follows the user."""
    return name.partition(" (")[0].casefold()


def awaits_second(run: Run) -> bool:
    """Return whether the decision that led to this run asks for a second person."""
    return any(
        ("intervention", number) in run.touched
        for number, intervention in run.interventions.items()
        if intervention.until
    )


_MOVES: Final = frozenset({Intervention.RETRY, Intervention.FORCE})
"""The interventions that send a command or clear a transition."""


def _who(note: InterventionNote) -> str:
    people = " and ".join(text for text in (note.by, note.second) if text)
    return ": ".join(text for text in (people, note.reason) if text)


def _asked_before(draft: Draft, signal: Intervene | Resolve | PersonAnswer, target: _Target) -> int | None:
    """Return the number of the same intervention that waits for a second person."""
    for number, intervention_note in draft.interventions.items():
        if (
            intervention_note.until is not None
            and (intervention_note.kind, intervention_note.mark) == (signal.kind, target.mark)
            and draft.now <= intervention_note.until
        ):
            return number
    return None


def _keep(draft: Draft, number: int, note: InterventionNote) -> None:
    draft.interventions = {**draft.interventions, number: note}
    draft.touched.add(("intervention", number))
    if len(draft.interventions) > MAX_INTERVENTIONS:
        oldest = min(draft.interventions)
        draft.interventions = {
            intervention: intervention_note
            for intervention, intervention_note in draft.interventions.items()
            if intervention != oldest
        }
        draft.touched.add(("intervention", oldest))


def _find(draft: Draft, signal: Intervene) -> _Target | Ignored:
    match signal.kind:
        case Intervention.RETRY | Intervention.SKIP:
            return _find_action(draft, signal)
        case Intervention.COMPLETE:
            return _find_step(draft, signal)
        case Intervention.FORCE:
            return _find_transition(draft, signal)
        case _:
            assert_never(signal.kind)


def _find_action(draft: Draft, signal: Intervene) -> _Target | Ignored:
    named = [key for key in draft.associations if key.action == signal.action and signal.step in {"", key.step}]
    label = _label(signal.action, signal.step)
    if not named:
        return Ignored(IgnoredKind.NOT_POSSIBLE, Text.of("{label} was not started in this run", label=label))
    allowed = [key for key in named if signal.kind in draft.action_of(key).interventions]
    if not allowed:
        return Ignored(
            IgnoredKind.NOT_ALLOWED,
            Text.of("the recipe does not allow {kind} for {label}", kind=kind_text(signal.kind), label=label),
        )
    fits = _is_retryable if signal.kind is Intervention.RETRY else _is_skippable
    found = [key for key in draft.in_recipe_order(set(allowed)) if fits(draft, key)]
    if not found:
        return Ignored(
            IgnoredKind.NOT_POSSIBLE,
            Text.of("{label} is not failed, timed out or unknown in an active step", label=label)
            if signal.kind is Intervention.RETRY
            else Text.of("{label} is not open, failed or unknown in an active step", label=label),
        )
    key = max(found, key=lambda row: draft.associations[row].attempt)

    def apply(by: str) -> None:
        origin = origin_of(draft, key)
        association = draft.associations[origin]
        if signal.kind is Intervention.RETRY:
            draft.put(origin, replace(association, resolved_by=by))
            repeat(draft, origin)
        else:
            draft.put(origin, replace(association, resolved_by=f"skipped by {by}"))
            skip(draft, origin, signal.data)

    subject = Text.of("{action} of {step}", action=key.action, step=key.step)
    return _Target(subject, f"{key}/{draft.associations[key].attempt}", apply)


def _label(action: str, step: str) -> Text:
    if step:
        return Text.of("action {action!r} of step {step!r}", action=action, step=step)
    return Text.of("action {action!r}", action=action)


def _is_unsuccessful(draft: Draft, key: AssociationKey, association: Association) -> bool:
    if key in left_failures(draft.net, draft):
        return True
    return not key.is_left_behind and association.step in draft.active and association.state in UNSUCCESSFUL


def _is_retryable(draft: Draft, key: AssociationKey) -> bool:
    association = draft.associations[key]
    if key in left_failures(draft.net, draft):
        return Intervention.RETRY in remedies(draft.net, key)
    if (
        draft.action_of(key).rule.sends is Moment.DEACTIVATION
        or key.is_left_behind
        or association.step not in draft.active
    ):
        return False
    return association.state in UNSUCCESSFUL or (
        association.state is ActionState.UNKNOWN and association.awaits_outcome
    )


def _is_skippable(draft: Draft, key: AssociationKey) -> bool:
    association = draft.associations[key]
    if association.state is ActionState.PENDING:
        return association.due is not None
    return association.awaits_outcome or association.state in _OPEN or _is_unsuccessful(draft, key, association)


def _find_step(draft: Draft, signal: Intervene) -> _Target | Ignored:
    step = draft.net.steps.get(signal.step)
    label = Text.of("step {step!r}", step=signal.step)
    if step is None or signal.step not in draft.active:
        return Ignored(IgnoredKind.NOT_POSSIBLE, Text.of("{label} is not active", label=label))
    if signal.kind not in step.interventions:
        return Ignored(
            IgnoredKind.NOT_ALLOWED,
            Text.of("the recipe does not allow {kind} for {label}", kind=kind_text(signal.kind), label=label),
        )
    if draft.done(signal.step):
        return Ignored(
            IgnoredKind.NOT_POSSIBLE, Text.of("{label} is done: its transition waits for a condition", label=label)
        )

    def apply(_: str) -> None:
        for action in step.actions:
            if action.rule.sends is not Moment.DEACTIVATION:
                on_deactivated(draft, action)
        draft.put_step(step.name, replace(draft.steps[step.name], completed=True))
        draft.fresh.add(step.name)

    return _Target(step.name, f"{step.name}/{draft.steps[step.name].count}", apply)


def _find_transition(draft: Draft, signal: Intervene) -> _Target | Ignored:
    step = draft.net.steps.get(signal.step)
    if step is None or signal.step not in draft.active:
        return Ignored(IgnoredKind.NOT_POSSIBLE, Text.of("step {step!r} is not active", step=signal.step))
    joining = [transition for transition in step.outgoing if signal.target in transition.targets]
    if not joining:
        return Ignored(
            IgnoredKind.NOT_POSSIBLE,
            Text.of("no transition leads from {step!r} to {target!r}", step=signal.step, target=signal.target),
        )
    enabled = [transition for transition in joining if draft.active.issuperset(transition.sources)]
    if not enabled:
        missing = ", ".join(sorted(set(joining[0].sources) - draft.active))
        return Ignored(
            IgnoredKind.NOT_POSSIBLE,
            Text.of("the transition also leaves steps that are not active: {missing}", missing=missing),
        )
    if stands(draft.net, draft):
        return Ignored(IgnoredKind.NOT_POSSIBLE, "an action failed after its step was left: retry or skip it first")
    forced = enabled[0]
    kept = [name for name in forced.sources if signal.kind not in draft.net.steps[name].interventions]
    if kept:
        return Ignored(
            IgnoredKind.NOT_ALLOWED,
            Text.of("the recipe does not allow {kind} for step {kept!r}", kind=kind_text(signal.kind), kept=kept[0]),
        )
    mark = " ".join(f"{name}/{draft.steps[name].count}" for name in forced.sources)
    return _Target(_text_of(forced), f"{mark} {forced.index}", lambda _: _clear(draft, forced))


def _text_of(transition: NetTransition) -> str:
    return f"{', '.join(transition.sources)} → {', '.join(transition.targets)}"


def _clear(draft: Draft, transition: NetTransition) -> None:
    """Clear an enabled transition, whatever its condition says and its steps still do, as soon as it has its locks."""
    if not force_when_held(draft, transition):
        return
    for source in transition.sources:
        deactivate(draft, source)
    for target in transition.targets:
        activate(draft, target)


def resolve(draft: Draft, signal: Resolve) -> Ignored | None:
    """Apply the decision of an operator about an unknown outcome; every recipe allows it."""
    return _decide(draft, signal, _find_unknown(draft, signal))


def _find_unknown(draft: Draft, signal: Resolve) -> _Target | Ignored:
    unknown = [
        key
        for key in draft.in_recipe_order(draft.open)
        if draft.associations[key].action == signal.action
        and draft.associations[key].state is ActionState.UNKNOWN
        and draft.associations[key].awaits_outcome
    ]
    if not unknown:
        return Ignored(
            IgnoredKind.NOT_UNKNOWN, Text.of("the outcome of action {action!r} is not unknown", action=signal.action)
        )
    key = origin_of(draft, max(unknown, key=lambda row: draft.associations[row].attempt))
    if signal.resolution is Resolution.REPEAT and draft.paused_at is not None:
        return Ignored(IgnoredKind.PAUSED, "the job is paused: resume it first")
    if signal.resolution is Resolution.REPEAT and key.is_left_behind:
        return Ignored(
            IgnoredKind.NOT_UNKNOWN, Text.of("the step of action {action!r} was activated again", action=signal.action)
        )

    def apply(by: str) -> None:
        draft.put(key, replace(draft.associations[key], resolved_by=by))
        match signal.resolution:
            case Resolution.DONE:
                on_completed(draft, key, signal.data)
            case Resolution.FAILED:
                on_failed(draft, key, failed(signal.reason))
            case Resolution.REPEAT:
                repeat(draft, key)
            case _:
                assert_never(signal.resolution)

    subject = Text.of("{action} of {step}", action=key.action, step=key.step)
    return _Target(subject, f"{key}/{draft.associations[key].attempt}", apply)


class HeldFailure(Struct, frozen=True):
    """An action that failed, in an active step or after its step; one of the interventions in `allowed` helps."""

    action: str
    step: str
    attempt: int
    state: ActionState
    error: str | Text
    allowed: tuple[Intervention, ...]


def held_failures(net: Net, run: Run) -> tuple[HeldFailure, ...]:
    """Return the failures for which a run waits, in the order of the recipe."""
    if not net.held or run.ended:
        return ()
    found = [key for key in net.held if _is_held(run, key)]
    found += [key for key in left_failures(net, run) if remedies(net, key)]
    found.sort(key=lambda key: (net.actions[key.latest].index, key))
    return tuple(_held_failure(net, run, key) for key in found)


def _is_held(run: Run, key: AssociationKey) -> bool:
    """Return whether an active step waits for a person."""
    association, step = run.associations.get(key), run.steps.get(key.step)
    return bool(association and association.state in UNSUCCESSFUL and step and step.active and not step.completed)


def _held_failure(net: Net, run: Run, key: AssociationKey) -> HeldFailure:
    association, allowed = run.associations[key], tuple(sorted(remedies(net, key)))
    return HeldFailure(key.action, key.step, association.attempt, association.state, association.error or "", allowed)
