"""The state of one run: its steps, associations, variables and timers.

A run is a value: the next run shares with it whatever a decision did not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import Struct

from edge.foundation.text import Text
from edge.sfc.identifiers import AssociationKey, command_id, parse_command_id


class RunLocks(msgspec.Struct, frozen=True, omit_defaults=True):
    """The locks of a run. Instants are milliseconds since the Unix epoch.

    While the run waits, `entering` names the steps that a transition is about to enter and `wanted` all locks that they
    need beyond those of the active steps; `held` may hold some of them already. Without the rest at `deadline` the run
    fails. `forced` holds the places of transitions that a person has forced, and that wait for their locks.
    """

    held: tuple[str, ...] = ()
    entering: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    since: int = 0
    deadline: int | None = None
    forced: tuple[int, ...] = ()

    @property
    def claimed(self) -> frozenset[str]:
        """Return the locks that the run holds or waits for."""
        return frozenset(self.held).union(self.wanted)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the locks for which the run waits, in the order in which they are acquired."""
        return tuple(text for text in self.wanted if text not in self.held)


NO_LOCKS = RunLocks()
"""The locks of a run that neither holds a lock nor waits for one."""


class LockChange(Struct, frozen=True):
    """What a decision does with the locks of its job: it releases some, claims others, and relies on those `granted`.

    A lock that is released and claimed goes to the end of its queue. `reason` says why locks are claimed.
    """

    released: frozenset[str] = frozenset()
    claimed: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    reason: str | Text = ""

    @property
    def names(self) -> list[str]:
        """Return the locks that change, in the order in which they are acquired."""
        return sorted(self.released.union(self.claimed, self.granted))


NO_LOCK_CHANGE = LockChange()
"""Changes no lock."""


def lock_change(before: RunLocks, after: RunLocks) -> LockChange:
    """Return what a decision does with the locks of its job."""
    if before is NO_LOCKS and after is NO_LOCKS:
        return NO_LOCK_CHANGE
    released = (set(before.held) - set(after.held)) | (set(before.missing) - after.claimed)
    granted = tuple(sorted(set(after.held) - set(before.held)))
    claimed = after.missing if after.missing != before.missing else ()
    if not (released or granted or claimed):
        return NO_LOCK_CHANGE
    return LockChange(frozenset(released), claimed, granted, lock_reason(after))


def lock_reason(after: RunLocks) -> str | Text:
    """Return why a run claims locks."""
    return Text.of("step {step}", step=", ".join(after.entering)) if after.entering else ""


class InterventionNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """An intervention, kept with the run for the job response. Instants are milliseconds since the Unix epoch.

    With `until` it waits for a second person up to that instant; `mark` then identifies the activation that it is
    about, and `data` is the result of a skipped action. `second` confirmed it at `second_at`, for `second_reason`.
    """

    kind: str
    subject: str | Text
    by: str
    reason: str
    at: int
    until: int | None = None
    mark: str = ""
    data: Any = None
    second: str = ""
    second_at: int | None = None
    second_reason: str = ""


FieldKind = Literal["run", "state", "step", "action", "stored", "var", "early", "past", "intervention", "locks"]
RunField = tuple[FieldKind, Any]
"""A field of a stored run: its kind, and which of them; None where there is only one of its kind."""
STATE_FIELD: Final[RunField] = ("state", None)
LOCKS_FIELD: Final[RunField] = ("locks", None)


class Outcome(StrEnum):
    """The outcome of a run; `running` until it ends."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    STOPPED = "stopped"

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _OUTCOMES[self]


_OUTCOMES: Final = {
    Outcome.RUNNING: Text.of("running"),
    Outcome.COMPLETED: Text.of("completed"),
    Outcome.FAILED: Text.of("failed"),
    Outcome.ABORTED: Text.of("aborted"),
    Outcome.STOPPED: Text.of("stopped"),
}


class ActionState(StrEnum):
    """The state of one activation of an association."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    UNKNOWN = "unknown"
    """The command may have been carried out, and its result cannot be found."""

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _ACTION_STATES[self]


_ACTION_STATES: Final = {
    ActionState.PENDING: Text.of("pending"),
    ActionState.DISPATCHED: Text.of("dispatched"),
    ActionState.WAITING: Text.of("waiting"),
    ActionState.COMPLETED: Text.of("completed"),
    ActionState.FAILED: Text.of("failed"),
    ActionState.TIMED_OUT: Text.of("timed out"),
    ActionState.STOPPED: Text.of("stopped"),
    ActionState.UNKNOWN: Text.of("unknown"),
}


class Sending(StrEnum):
    """Whether a command has left the gateway, as far as that is known."""

    SENT = "sent"
    MAYBE = "may have been sent"
    NEVER = "never sent"
    NOT_YET = "not sent yet"

    @property
    def text(self) -> Text:
        """Return it for people."""
        return _SENDINGS[self]


_SENDINGS: Final = {
    Sending.SENT: Text.of("sent"),
    Sending.MAYBE: Text.of("may have been sent"),
    Sending.NEVER: Text.of("never sent"),
    Sending.NOT_YET: Text.of("not sent yet"),
}

NO_UNSENT: Final[Mapping[str, Sending]] = MappingProxyType({})
"""Commands by their id that no instance has recorded as sent: `NOT_YET`, or `MAYBE` where that is not known."""


UNSUCCESSFUL: Final = frozenset({ActionState.FAILED, ActionState.TIMED_OUT})


class StepState(msgspec.Struct, frozen=True, array_like=True):
    """A step that was active at least once; `elapsed_ms` is its last T once left, `held_ms` its time in pauses.

    `completed` says that a person completed it: it is done, whatever its actions do.
    Stored as an array in this order, without the defaults at its end; its instant counts from the start of the run.
    """

    activated_at: int = 0
    count: int = 0
    active: bool = False
    elapsed_ms: int = 0
    held_ms: int = 0
    completed: bool = False

    def t(self, now: int) -> int:
        """Return T in milliseconds (IEC 61131-3, 6.7.2): the elapsed time, or the last one once the step is left."""
        return max(0, now - self.activated_at - self.held_ms) if self.active else self.elapsed_ms


class Association(msgspec.Struct, frozen=True, array_like=True):
    """The latest activation of an action association.

    `deadline` is when its answer or event is overdue, `due` when its duration T has passed. The type is kept only where
    an event is awaited. `begun` names the process that committed the begun mark of the command; it is empty before.
    `resolved_by` is the person who answered, or decided about an unknown outcome, then with the reason. `withdrawn`
    says that its command never left the gateway, `doubtful` that it may not have left. An `error` that is a string is
    of equipment, a person, or release 0.9.0.

    Stored as an array of the first `_STORED_MEMBERS`, without the defaults at its end; its instants count from the
    start of the run. New members stand before `action`, or arrays that are stored already are misread.
    """

    state: ActionState = ActionState.PENDING
    attempt: int = 0
    armed_at: int | None = None
    ended_at: int | None = None
    result: Any = None
    deadline: int | None = None
    due: int | None = None
    error: str | Text | None = None
    reset: bool = False
    type_id: str = ""
    event_id: str = ""
    begun: str = ""
    resolved_by: str = ""
    withdrawn: bool = False
    doubtful: bool = False
    action: str = ""
    step: str = ""
    command_id: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether an answer, an event or a duration may still change it."""
        return self.awaits_outcome or self.state is ActionState.WAITING or self.due is not None

    @property
    def sent_at(self) -> int | None:
        """Return when its command was sent, or its wait began; None for a command that never left the gateway."""
        return None if self.withdrawn else self.armed_at

    @property
    def sending(self) -> Sending:
        """Return whether its command has left the gateway; one that waits to be sent counts as sent."""
        return _sending(withdrawn=self.withdrawn, doubtful=self.doubtful)

    @property
    def awaits_outcome(self) -> bool:
        """Return whether an answer to its command may still change it; an unknown outcome can still be resolved."""
        return self.state is ActionState.DISPATCHED or (self.state is ActionState.UNKNOWN and self.ended_at is None)


def _sending(*, withdrawn: bool, doubtful: bool) -> Sending:
    if withdrawn:
        return Sending.NEVER
    return Sending.MAYBE if doubtful else Sending.SENT


class PastAttempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An earlier activation of an association, or a `late` result; both are kept for the job response."""

    action: str
    step: str
    attempt: int
    state: ActionState
    reset: bool = False
    armed_at: int | None = None
    ended_at: int | None = None
    result: Any = None
    error: str | Text | None = None
    resolved_by: str = ""
    late: bool = False
    withdrawn: bool = False
    doubtful: bool = False

    @property
    def sent_at(self) -> int | None:
        """Return when its command was sent, or its wait began; None for a command that never left the gateway."""
        return None if self.withdrawn else self.armed_at

    @property
    def sending(self) -> Sending:
        """Return whether its command has left the gateway; one that waits to be sent counts as sent."""
        return _sending(withdrawn=self.withdrawn, doubtful=self.doubtful)


class KeptEvent(msgspec.Struct, frozen=True):
    """An event that named the job before the job waited for it."""

    type_id: str
    id: str
    data: Any = None


class Run(msgspec.Struct, frozen=True):
    """One run. Instants are milliseconds since the Unix epoch.

    `active`, `open`, `revision`, `touched` and `tested_at` follow from the rest or serve speed: they are not stored.
    """

    job_id: str
    scope: str
    run_id: str
    parameters: dict[str, Any]
    outcome: Outcome = Outcome.RUNNING
    error: str | Text | None = None
    started_at: int | None = None
    ended_at: int | None = None
    paused_at: int | None = None
    steps: dict[str, StepState] = {}
    associations: dict[AssociationKey, Association] = {}
    stored: dict[str, AssociationKey] = {}
    """The association that set each stored action."""
    variables: dict[str, Any] = {}
    early: dict[int, KeptEvent] = {}
    past: dict[int, PastAttempt] = {}
    interventions: dict[int, InterventionNote] = {}
    faults: tuple[AssociationKey, ...] = ()
    """The associations that failed while the run was paused, to be judged when it is resumed."""
    locks: RunLocks = NO_LOCKS
    active: frozenset[str] = frozenset()
    open: frozenset[AssociationKey] = frozenset()
    revision: int = 0
    touched: frozenset[RunField] = frozenset()
    tested_at: int = -1

    @property
    def paused(self) -> bool:
        """Return whether the run is held."""
        return self.paused_at is not None

    @property
    def ended(self) -> bool:
        """Return whether the run is over."""
        return self.outcome is not Outcome.RUNNING


class RunState(Protocol):
    """What a run and its working copy have in common while it is decided about."""

    @property
    def active(self) -> AbstractSet[str]:
        """The names of the active steps."""

    @property
    def open(self) -> AbstractSet[AssociationKey]:
        """The associations that an answer, an event or a duration may still change."""

    @property
    def associations(self) -> Mapping[AssociationKey, Association]:
        """The latest activation of each association."""

    @property
    def faults(self) -> Sequence[AssociationKey]:
        """The associations that failed, until they are judged."""


def new_run(job_id: str, scope: str, run_id: str, parameters: Mapping[str, Any]) -> Run:
    """Return the run of a job that has not started; the parameters are those of its job order."""
    return Run(job_id=job_id, scope=scope, run_id=run_id, parameters=dict(parameters))


def outstanding(run: Run, command: str) -> Association | None:
    """Return the association whose command waits for its answer; None when there is none."""
    association = find_command(run, command)
    return association if association is not None and association.state is ActionState.DISPATCHED else None


def is_outstanding(run: Run, command: str) -> bool:
    """Return whether a command waits for its answer."""
    return outstanding(run, command) is not None


def has_overdue_limit(run: Run, sent_before: int, over_at: int) -> bool:
    """Return whether an action that was sent before an instant is overdue at another one; not while the run is paused.

    Both are in milliseconds since the epoch.
    """
    return not run.paused and any(
        item.deadline is not None and item.deadline <= over_at and (item.armed_at or 0) <= sent_before
        for item in run.associations.values()
    )


def is_too_late(run: Run, association: Association, now: int) -> bool:
    """Return whether the time for a start that waits for its answer is over: it must not be sent any more.

    Its time is over at its time limit, or with the T of an L or SL.
    """
    if association.reset or run.paused:
        return False
    due, deadline = association.due, association.deadline
    return (due is not None and due <= now) or (deadline is not None and deadline <= now)


def find_command(run: Run, command: str) -> Association | None:
    """Return the association whose command awaits an outcome; None when there is none."""
    key = key_of_command(run, command)
    return None if key is None else run.associations[key]


def key_of_command(run: RunState, command: str) -> AssociationKey | None:
    """Return the key of the association whose command awaits an outcome; None when there is none."""
    for key in run.open:
        association = run.associations[key]
        if association.command_id == command and association.awaits_outcome:
            return key
    return None


def results_of(run: Run, command: str) -> list[Any]:
    """Return the results of a command: its answer, and those that came late."""
    key = parse_command_id(command)
    if key is None or key.run_id != run.run_id:
        return []
    wanted = (key.action, key.attempt, key.reset)
    attempts: list[Association | PastAttempt] = [*run.associations.values(), *run.past.values()]
    return [attempt.result for attempt in attempts if (attempt.action, attempt.attempt, attempt.reset) == wanted]


def commands_with_result(run: Run) -> list[tuple[str, Any]]:
    """Return the id of each command that has a result with that result, also with those that came late."""
    attempts: list[Association | PastAttempt] = [*run.past.values(), *run.associations.values()]
    return [
        (command_id(run.job_id, run.run_id, attempt.action, attempt.attempt, reset=attempt.reset), attempt.result)
        for attempt in attempts
        if attempt.result is not None
    ]


def waits(run: Run) -> dict[str, int]:
    """Return, for each event type the run waits for, since when it has waited longest."""
    found: dict[str, int] = {}
    if run.ended:
        return found
    for key in run.open:
        association = run.associations[key]
        if association.state is ActionState.WAITING and association.armed_at is not None:
            found[association.type_id] = min(association.armed_at, found.get(association.type_id, association.armed_at))
    return found
