"""The working copy of a run during one decision; `finish` returns the next run."""

from __future__ import annotations

from typing import Any, Final

from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net, NetAction, request
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
    StepState,
)
from edge.sfc.signal import NO_MIRRORS, CommandRequest, Mirrors, Phase, StepChange
from edge.sfc.view import RunView

MAX_PAST: Final = 200
"""The number of earlier attempts and late results that a run keeps."""


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
            and any((one.action, one.attempt, one.reset) == known and not one.late for one in self.past.values())
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

    def set_outcome(self, outcome: Outcome, error: str | None) -> None:
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
