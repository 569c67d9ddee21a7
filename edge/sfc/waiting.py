"""The reason why a run waits, and the interventions that it accepts now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct

from edge.expression.compiler import Unmet
from edge.expression.value import EvaluationError
from edge.foundation.text import Text, join_texts
from edge.model.recipe import Intervention
from edge.sfc.advance import advance
from edge.sfc.intervention import HeldFailure, held_failures
from edge.sfc.net import Net, NetTransition
from edge.sfc.run import NO_UNSENT, ActionState, Association, Run, Sending
from edge.sfc.signal import NO_MIRRORS, Advanced, Intervene, Mirrors, Resolution, Resolve, kind_text
from edge.sfc.view import RunView, left_failures

START: Final = "start"
"""Stands for the sources of the entry of the initial step, which has none."""

ALWAYS: Final = "always"
"""Stands for the condition of a transition that has none."""

NO_HOLDERS: Final[Mapping[str, Text]] = MappingProxyType({})


class TransitionWaits(Struct, frozen=True):
    """A transition whose sources are active, and the parts that keep it from clearing, such as a lock."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    condition: str
    unmet: tuple[Unmet, ...]
    index: int = -1
    """Its rank in the net; -1 for the entry of the initial step."""

    @property
    def text(self) -> Text:
        """Return it for people."""
        unmet = join_texts("; ", (join_texts(": ", (item.text, item.because)) for item in self.unmet))
        return Text.of(
            "{sources} → {targets} [{condition}] waits for {unmet}",
            sources=", ".join(self.sources) or Text.of("start"),
            targets=", ".join(self.targets),
            condition=Text.of("always") if self.condition == ALWAYS else self.condition,
            unmet=unmet,
        )

    def __str__(self) -> str:
        return str(self.text)


class ActionWaits(Struct, frozen=True):
    """An association that is open: a command without answer, an awaited event, or a duration that runs.

    Times are milliseconds; `age_ms` counts from the sending, `left_ms` is the time to the deadline, `due_in_ms` that to
    the end of the duration. While the run is paused they stand still. `error` says why an outcome is unknown.
    """

    action: str
    step: str
    state: ActionState
    attempt: int
    age_ms: int | None
    left_ms: int | None
    due_in_ms: int | None
    error: str | Text | None = None
    sending: Sending = Sending.SENT

    @property
    def text(self) -> Text:
        """Return it for people."""
        parts: list[str | Text] = [self._state_text()]
        if self.error is not None:
            parts.append(self.error)
        if self.age_ms is not None:
            parts.append(Text.of("for {seconds:g} s", seconds=self.age_ms / 1000))
        if self.left_ms is not None:
            parts.append(Text.of("times out in {seconds:g} s", seconds=self.left_ms / 1000))
        if self.due_in_ms is not None:
            parts.append(Text.of("duration ends in {seconds:g} s", seconds=self.due_in_ms / 1000))
        return join_texts(", ", parts)

    def _state_text(self) -> Text:
        if self.sending is Sending.MAYBE:
            return Text.of("action {action} of {step} may have been sent", action=self.action, step=self.step)
        state = self.state.text if self.sending is Sending.SENT else self.sending.text
        return Text.of("action {action} of {step} is {state}", action=self.action, step=self.step, state=state)

    def __str__(self) -> str:
        return str(self.text)


class RunHalted(Struct, frozen=True):
    """The run does not evolve: it is paused, has not started or has ended."""

    text: Text

    def __str__(self) -> str:
        return str(self.text)


class PersonWaits(Struct, frozen=True):
    """An action failed, and the run waits for a person."""

    failure: HeldFailure

    @property
    def text(self) -> Text:
        """Return it for people."""
        held_failure = self.failure
        return Text.of(
            "action {action} of {step} {error}: waits for a person ({allowed})",
            action=held_failure.action,
            step=held_failure.step,
            error=held_failure.error,
            allowed=join_texts(", ", (kind_text(kind) for kind in held_failure.allowed)),
        )

    def __str__(self) -> str:
        return str(self.text)


class SecondPersonWaits(Struct, frozen=True):
    """A person asked for an intervention, and another person must confirm it; `left_ms` is the time for it."""

    kind: str
    subject: str | Text
    by: str
    left_ms: int

    @property
    def text(self) -> Text:
        """Return it for people."""
        return Text.of(
            "{kind} {subject}, asked for by {by}: waits for a second person for {seconds} s",
            kind=kind_text(self.kind),
            subject=self.subject,
            by=self.by,
            seconds=math.ceil(self.left_ms / 1000),
        )

    def __str__(self) -> str:
        return str(self.text)


Waiting: TypeAlias = TransitionWaits | ActionWaits | PersonWaits | SecondPersonWaits | RunHalted


def explain_waiting(
    net: Net,
    run: Run,
    now: int,
    holders: Mapping[str, Text] = NO_HOLDERS,
    mirrors: Mirrors = NO_MIRRORS,
    unsent: Mapping[str, Sending] = NO_UNSENT,
) -> tuple[Waiting, ...]:
    """Return what a run waits for: transitions by rank, then actions in the order of the recipe.

    `holders` says of each lock that is not free who holds it; `unsent` are the commands that are not known as sent.
    """
    if run.ended:
        outcome = run.outcome.text
        if run.error:
            return (RunHalted(Text.of("the run is {outcome}: {error}", outcome=outcome, error=run.error)),)
        return (RunHalted(Text.of("the run is {outcome}", outcome=outcome)),)
    if run.started_at is None:
        return (RunHalted(Text.of("the run has not started")),)
    at = now if run.paused_at is None else run.paused_at
    view = RunView(net, run, at, mirrors)
    enabled = {
        transition.index: transition
        for step in run.active
        for transition in net.steps[step].outgoing
        if run.active.issuperset(transition.sources)
    }
    if not run.steps:
        enabled = {net.entry.index: net.entry}
    halted = (RunHalted(Text.of("paused for {seconds:g} s", seconds=(now - at) / 1000)),) if run.paused else ()
    return (
        *halted,
        *(_transition(enabled[index], view, holders, unsent) for index in sorted(enabled)),
        *_actions(net, run, at, unsent),
        *map(PersonWaits, held_failures(net, run)),
        *(
            SecondPersonWaits(intervention.kind, intervention.subject, intervention.by, intervention.until - now)
            for intervention in run.interventions.values()
            if intervention.until is not None and intervention.until >= now
        ),
    )


def _transition(
    transition: NetTransition, view: RunView, holders: Mapping[str, Text], unsent: Mapping[str, Sending]
) -> TransitionWaits:
    unfinished = [step for step in transition.needs_done if not view.done(step)]
    unmet = [Unmet(f"steps.{step}.done", _unfinished(step, view, unsent)) for step in unfinished]
    for condition in transition.conditions:
        try:
            met = condition.evaluate(view) is True
        except EvaluationError as error:
            unmet.append(Unmet(condition.text, error.text))
            continue
        if not met:
            unmet += condition.explain(view)
    locks = view.run.locks
    if not unmet or transition.index in locks.forced:
        unmet = [_lock(text, view, holders) for text in locks.missing if text in transition.locks]
    if not unmet and (left := left_failures(view.net, view.run)):
        because = Text.of("failed after its step: a person decides first")
        unmet = [Unmet(Text.of("{action} of {step}", action=key.action, step=key.step), because) for key in left]
    return TransitionWaits(
        transition.sources, transition.targets, transition.text or ALWAYS, tuple(unmet), transition.index
    )


def _lock(name: str, view: RunView, holders: Mapping[str, Text]) -> Unmet:
    locks = view.run.locks
    parts = [
        holders.get(name) or Text.of("not free"),
        Text.of("waits for {seconds:g} s", seconds=(view.at - locks.since) / 1000),
    ]
    if locks.deadline is not None:
        parts.append(Text.of("times out in {seconds:g} s", seconds=(locks.deadline - view.at) / 1000))
    return Unmet(Text.of("lock {lock}", lock=name), join_texts(", ", parts))


def _unfinished(step: str, view: RunView, unsent: Mapping[str, Sending]) -> Text:
    over = {ActionState.COMPLETED, ActionState.STOPPED}
    waiting = [view.associations[key] for key in view.net.steps[step].holding]
    open_actions = [association for association in waiting if association.state not in over]
    return join_texts(", ", (_open_text(action, unsent.get(action.command_id)) for action in open_actions))


def _open_text(action: Association, sending: Sending | None) -> Text:
    if sending is Sending.MAYBE:
        return Text.of("{action} may have been sent", action=action.action)
    return Text.of("{action} is {state}", action=action.action, state=sending.text if sending else action.state.text)


def _actions(net: Net, run: Run, at: int, unsent: Mapping[str, Sending]) -> list[ActionWaits]:
    found = []
    for key in sorted(run.open, key=lambda key: (net.actions[key.latest].index, key)):
        association = run.associations[key]
        found.append(
            ActionWaits(
                action=association.action,
                step=association.step,
                state=association.state,
                attempt=association.attempt,
                age_ms=None if association.armed_at is None else at - association.armed_at,
                left_ms=None if association.deadline is None else association.deadline - at,
                due_in_ms=None if association.due is None else association.due - at,
                error=association.error,
                sending=unsent.get(association.command_id, Sending.SENT),
            )
        )
    return found


def possible_interventions(net: Net, run: Run, now: int) -> tuple[Intervene, ...]:
    """Return each intervention that would change the run, without person and reason, in the order of the recipe."""
    if run.ended or run.started_at is None:
        return ()
    # The engine itself decides, so that this list cannot differ from its decision.
    found = dict.fromkeys(_candidates(net, run))
    return tuple(intervene for intervene in found if isinstance(advance(net, run, intervene, now), Advanced))


def possible_resolutions(net: Net, run: Run, now: int) -> tuple[Resolve, ...]:
    """Return each decision about an unknown outcome that would change the run, without person and reason."""
    if run.ended:
        return ()
    unknown = dict.fromkeys(key.action for key, item in run.associations.items() if item.state is ActionState.UNKNOWN)
    found = (Resolve(action, resolution) for action in unknown for resolution in Resolution)
    return tuple(resolve for resolve in found if isinstance(advance(net, run, resolve, now), Advanced))


def _candidates(net: Net, run: Run) -> Iterator[Intervene]:
    for key, action in net.actions.items():
        if key in run.associations:
            for kind in (Intervention.RETRY, Intervention.SKIP):
                if kind in action.interventions:
                    yield Intervene(kind, action=key.action, step=key.step)
    for name, step in net.steps.items():
        if name not in run.active:
            continue
        if Intervention.COMPLETE in step.interventions:
            yield Intervene(Intervention.COMPLETE, step=name)
        if Intervention.FORCE in step.interventions:
            for transition in step.outgoing:
                yield Intervene(Intervention.FORCE, step=name, target=transition.targets[0])
