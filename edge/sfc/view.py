"""A run during a decision: what conditions see of it with its net, and the working copy that becomes the next run.

A falling pulse (P0) is sent when its step is left, and a stored action may fail after its step. Where the recipe allows
to retry or skip the action, no transition clears before a person does so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from edge.expression.value import UNKNOWN
from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.condition import wake_instants
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import HELPS_A_FAILURE, Moment, Net, NetAction, request
from edge.sfc.run import (
    LOCKS_FIELD,
    NO_LOCKS,
    STATE_FIELD,
    UNSUCCESSFUL,
    ActionState,
    Association,
    Outcome,
    PastAttempt,
    Run,
    RunField,
    RunState,
    StepState,
)
from edge.sfc.signal import NO_MIRRORS, AskedMirrors, CommandRequest, Mirrors, Phase, StepChange


def left_failures(net: Net, state: RunState) -> tuple[AssociationKey, ...]:
    """Return the recorded failures that no active step can handle, in the order in which they occurred.

    The failure of a pulse or reset that its step did not wait for is not included: it does not concern the run.
    """
    if not state.faults:
        return ()
    failed = [
        key
        for key in dict.fromkeys(state.faults)
        if key in state.associations and state.associations[key].state in UNSUCCESSFUL
    ]
    attended = {key.action for key in failed if key.step in state.active}
    return tuple(key for key in failed if _is_left(net, key, attended))


def _is_left(net: Net, key: AssociationKey, attended: set[str]) -> bool:
    rule = net.actions[key.latest].rule
    return rule.sends is Moment.DEACTIVATION or (rule.stored and key.action not in attended)


def remedies(net: Net, key: AssociationKey) -> frozenset[Intervention]:
    """Return the interventions that the recipe allows for the failure of an action.

    A start that was left behind is not retried: its step is active again, and starts the action in its turn.
    """
    allowed = net.actions[key.latest].interventions & HELPS_A_FAILURE
    return allowed - {Intervention.RETRY} if key.is_left_behind else allowed


def stands(net: Net, state: RunState) -> bool:
    """Return whether no transition clears before a person has decided about a failure."""
    return bool(left_failures(net, state))


_OVER = frozenset({ActionState.COMPLETED, ActionState.STOPPED})


class RunView:
    """A run seen at an instant; conditions read it and must not change it."""

    __slots__ = ("associations", "at", "mirrors", "net", "run", "steps", "variables")

    def __init__(self, net: Net, run: Run, at: int, mirrors: Mirrors = NO_MIRRORS) -> None:
        self.net = net
        self.run = run
        self.at = at
        self.mirrors = AskedMirrors(mirrors)
        self.steps: Mapping[str, StepState] = run.steps
        self.associations: Mapping[AssociationKey, Association] = run.associations
        self.variables: Mapping[str, Any] = run.variables

    def step(self, name: str, prop: str) -> Any:
        """Return X, T (seconds), count or done of a step."""
        state = self.steps.get(name)
        match prop:
            case "X":
                return state is not None and state.active
            case "T":
                return state.t(self.at) / 1000 if state else 0.0
            case "count":
                return state.count if state else 0
            case _:
                return state is not None and self.done(name)

    def done(self, step: str) -> bool:
        """Return whether all actions that a step waits for have ended, or a person completed the step."""
        for key in self.net.steps[step].holding:
            if self.associations[key].state not in _OVER:
                return self.steps[step].completed
        return True

    def action(self, keys: tuple[AssociationKey, ...], prop: str) -> Any:
        """Return a property of the newest of these associations."""
        if prop == "attempts":
            action = self.net.actions[keys[0]]
            return self.attempts(action.name, reset=action.rule.resets)
        newest = self._newest(keys)
        match prop:
            case "state":
                return (newest.state if newest else ActionState.PENDING).value
            case "done":
                return newest is not None and newest.state is ActionState.COMPLETED
            case "failed":
                return newest is not None and newest.state is ActionState.FAILED
            case "unknown":
                return newest is not None and newest.state is ActionState.UNKNOWN
            case "timed_out":
                return newest is not None and newest.state is ActionState.TIMED_OUT
            case _:
                return UNKNOWN if newest is None or newest.result is None else newest.result

    def _newest(self, keys: tuple[AssociationKey, ...]) -> Association | None:
        if len(keys) == 1:
            return self.associations.get(keys[0])
        associations = [shared for key in keys if (shared := self.associations.get(key))]
        return max(
            associations,
            key=lambda association: -1 if association.armed_at is None else association.armed_at,
            default=None,
        )

    def attempts(self, name: str, *, reset: bool) -> int:
        """Count the starts of an action so far, or its resets."""
        highest = 0
        for action in (self.net.resetting if reset else self.net.starting).get(name, ()):
            association = self.associations.get(action.key)
            if association is not None and association.attempt > highest:
                highest = association.attempt
        return highest

    def job(self, prop: str) -> Any:
        """Return id, scope or parameters of the job."""
        match prop:
            case "id":
                return self.run.job_id
            case "scope":
                return self.run.scope
            case _:
                return self.run.parameters

    def variable(self, name: str) -> Any:
        """Return the newest value of a job variable: of a result, else of the job order's parameters."""
        if name in self.variables:
            return self.variables[name]
        return self.run.parameters.get(name, UNKNOWN)

    def wake(self, step: str, seconds: float) -> int | None:
        """Return the instant at which the T of an active step reaches that many seconds."""
        state = self.steps.get(step)
        if state is None or not state.active:
            return None
        # The tiny shift undoes the binary rounding of decimal seconds.
        return state.activated_at + state.held_ms + math.ceil(seconds * 1000 - 1e-6)


def next_deadline(net: Net, run: Run) -> int | None:
    """Return the earliest instant at which a Tick can change the run; None when time alone changes nothing."""
    if run.ended or run.paused_at is not None or run.started_at is None:
        return None
    is_timed = not net.timed.isdisjoint(run.active)
    instants = wakes_after(RunView(net, run, run.tested_at), run.active, run.tested_at) if is_timed else []
    if run.locks.deadline is not None and not stands(net, run):
        instants.append(run.locks.deadline)
    for key in run.open:
        association = run.associations[key]
        if association.due is not None:
            instants.append(association.due)
        if association.deadline is not None:
            instants.append(association.deadline)
    return min(instants, default=None)


def wakes_after(view: RunView, active: AbstractSet[str], since: int) -> list[int]:
    """Return the instants after `since` at which the passing of time may make a transition of active steps clear."""
    return [
        instant
        for step in active & view.net.timed
        for transition in view.net.steps[step].outgoing
        for condition in transition.conditions
        for instant in wake_instants(condition, view)
        if instant > since
    ]


def results(net: Net, run: Run) -> dict[str, Any]:
    """Return the latest result of each action that has one, in the order in which they ended, then of the recipe."""

    def when(key: AssociationKey) -> tuple[int, int]:
        net_action = net.actions.get(key.latest)
        return run.associations[key].ended_at or 0, net_action.index if net_action else 0

    ordered = [run.associations[key] for key in sorted(run.associations, key=when)]
    return {association.action: association.result for association in ordered if association.result is not None}


MAX_PAST: Final = 200
"""The number of earlier attempts and late results that a run keeps."""


def expected_steps(net: Net, run: Run) -> int:
    """Return the number of steps of the way that a run takes: those it has entered, and those that lie ahead.

    Ahead of each active step lies the first way by rank that leads to a step that it has not entered, such as the one
    without a failure. A run that has ended has none ahead.
    """
    way = {name for name, step in run.steps.items() if step.count}
    if run.ended:
        return len(way)
    ahead = list(run.active) if run.steps else [net.initial]
    way.update(ahead)
    while ahead:
        for transition in net.steps[ahead.pop()].outgoing:
            if new := [target for target in transition.targets if target not in way]:
                way.update(new)
                ahead += new
                break
    return len(way)


class Draft(RunView):
    """A run that is being changed, the requests and step changes collected so far, and what was touched.

    `now` is the instant of changes; `at` is the instant that conditions see: a late Tick catches up instant by instant.
    """

    __slots__ = (
        "active",
        "associations",
        "changes",
        "early",
        "ended_at",
        "error",
        "faults",
        "fresh",
        "interventions",
        "locks",
        "now",
        "open",
        "outcome",
        "past",
        "paused_at",
        "requests",
        "started_at",
        "steps",
        "stored",
        "taken",
        "tested_at",
        "touched",
        "variables",
    )

    def __init__(self, net: Net, run: Run, now: int, mirrors: Mirrors = NO_MIRRORS) -> None:
        super().__init__(net, run, now, mirrors)
        self.now = now
        self.steps: dict[str, StepState] = run.steps.copy()
        self.associations: dict[AssociationKey, Association] = run.associations.copy()
        self.variables: dict[str, Any] = run.variables
        self.stored = run.stored.copy()
        self.early = run.early.copy()
        self.past = run.past
        self.interventions = run.interventions
        self.locks = run.locks
        self.active = set(run.active)
        self.open = set(run.open)
        self.outcome = run.outcome
        self.error = run.error
        self.started_at = run.started_at
        self.ended_at = run.ended_at
        self.paused_at = run.paused_at
        self.tested_at = run.tested_at
        self.faults = list(run.faults)
        self.fresh: set[str] = set()
        """The steps whose transitions must be tested."""
        self.requests: list[CommandRequest] = []
        self.changes: list[StepChange] = []
        self.touched: set[RunField] = set()
        self.taken: AssociationKey | None = None

    def put(self, key: AssociationKey, association: Association) -> None:
        """Write an association."""
        self.associations[key] = association
        self.touched.add(("action", key))
        self.fresh.add(association.step)
        if association.is_open:
            self.open.add(key)
        else:
            self.open.discard(key)

    def remember(self, association: Association, *, late: bool = False) -> None:
        """Keep an activation for the job response, among the newest `MAX_PAST`; each attempt is kept once."""
        known = (association.action, association.attempt, association.reset)
        if association.armed_at is None or (
            not late
            and any(
                (past_attempt.action, past_attempt.attempt, past_attempt.reset) == known and not past_attempt.late
                for past_attempt in self.past.values()
            )
        ):
            return
        number = max(self.past, default=0) + 1
        self.past = self.past | {
            number: PastAttempt(
                action=association.action,
                step=association.step,
                attempt=association.attempt,
                state=association.state,
                reset=association.reset,
                armed_at=association.armed_at,
                ended_at=association.ended_at,
                result=association.result,
                error=association.error,
                resolved_by=association.resolved_by,
                late=late,
                withdrawn=association.withdrawn,
                doubtful=association.doubtful,
            )
        }
        self.touched.add(("past", number))
        if len(self.past) > MAX_PAST:
            oldest = min(self.past)
            del self.past[oldest]
            self.touched.add(("past", oldest))

    def drop(self, key: AssociationKey) -> None:
        """Forget an association."""
        del self.associations[key]
        self.touched.add(("action", key))
        self.open.discard(key)

    def put_step(self, name: str, state: StepState) -> None:
        """Write a step."""
        self.steps[name] = state
        self.touched.add(("step", name))

    def set_stored(self, name: str, key: AssociationKey) -> None:
        """Record which association set an action."""
        if self.stored.get(name) != key:
            self.stored[name] = key
            self.touched.add(("stored", name))

    def clear_stored(self, name: str) -> AssociationKey | None:
        """Clear a stored action; returns the association that had set it."""
        key = self.stored.pop(name, None)
        if key is not None:
            self.touched.add(("stored", name))
        return key

    def merge_variables(self, result: Any) -> None:
        """Merge the top-level keys of a result into the job variables."""
        if isinstance(result, dict) and result:
            self.variables = self.variables | result
            self.touched.update(("var", name) for name in result)

    def send(self, action: NetAction, phase: Phase, association: Association) -> None:
        """Request a command."""
        self.requests.append(request(self.run, action, phase, association.command_id, association.attempt))

    def stop(self, action: NetAction, association: Association) -> None:
        """Request the stop of a command without answer, or of one that its SL still limits.

        A wait has nothing to stop, and a reset is never stopped.
        """
        running = association.awaits_outcome or (
            association.state is ActionState.COMPLETED and association.due is not None
        )
        if running and not action.pull and not action.rule.resets:
            self.send(action, Phase.STOP, association)

    def forget_decided_failures(self) -> None:
        """Remove the failures that a person has retried or skipped, and repetitions."""
        if self.faults:
            kept = [key for key in dict.fromkeys(self.faults) if key in self.associations]
            self.faults = [key for key in kept if self.associations[key].state in UNSUCCESSFUL]

    def clear_failures(self) -> None:
        """Remove the failures that are judged, and the commands left behind that ended with one."""
        for key in self.faults:
            if key.is_left_behind:
                self.remember(self.associations[key])
                self.drop(key)
        self.faults.clear()

    def action_of(self, key: AssociationKey) -> NetAction:
        """Return the association of a key, also of one that was left behind."""
        return self.net.actions[key.latest]

    def in_recipe_order(self, keys: set[AssociationKey]) -> list[AssociationKey]:
        """Sort association keys as the recipe lists them."""
        return sorted(keys, key=lambda key: (self.action_of(key).index, key))

    def set_outcome(self, outcome: Outcome, error: str | Text | None) -> None:
        """Record how the run ended."""
        self.outcome = outcome
        self.error = error
        self.ended_at = self.now
        self.locks = NO_LOCKS

    def finish(self) -> Run:
        """Return the next run."""
        run = self.run
        head = (self.outcome, self.error, self.started_at, self.ended_at, self.paused_at, tuple(self.faults))
        if head != (run.outcome, run.error, run.started_at, run.ended_at, run.paused_at, run.faults):
            self.touched.add(STATE_FIELD)
        if self.locks is not run.locks:
            self.touched.add(LOCKS_FIELD)
        return Run(
            job_id=run.job_id,
            scope=run.scope,
            run_id=run.run_id,
            parameters=run.parameters,
            outcome=self.outcome,
            error=self.error,
            started_at=self.started_at,
            ended_at=self.ended_at,
            paused_at=self.paused_at,
            steps=self.steps,
            associations=self.associations,
            stored=self.stored,
            variables=self.variables,
            early=self.early,
            past=self.past,
            interventions=self.interventions,
            faults=tuple(self.faults),
            locks=self.locks,
            active=frozenset(self.active),
            open=frozenset(self.open),
            revision=run.revision + 1,
            touched=frozenset(self.touched),
            tested_at=self.tested_at,
        )
