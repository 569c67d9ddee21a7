"""Reads the records of a run: draws its timeline, and repeats it to see whether the same decisions come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from edge.foundation.text import Text
from edge.sfc.advance import advance
from edge.sfc.history import ActionChange, Changes, DecisionRecord, changes_of
from edge.sfc.identifiers import AssociationKey
from edge.sfc.net import Net
from edge.sfc.run import ActionState, Association, PastAttempt, Run, new_run
from edge.sfc.run_fields import encode
from edge.sfc.signal import Advanced, Intervene, Pause, PersonAnswer, Resolve, Resume, Start

_WithError = TypeVar("_WithError", Run, Association, PastAttempt)


class Difference(Struct, frozen=True):
    """A signal for which the repetition decided otherwise: the recorded changes, and those of the repetition.

    `ignored` is why the repetition ignored the signal, empty when it did not.
    """

    record: DecisionRecord
    repeated: Changes
    ignored: str


class Replay(Struct, frozen=True):
    """A repeated run, and where its decisions differ from the records."""

    run: Run
    differences: tuple[Difference, ...]


def starts_at_the_beginning(records: Sequence[DecisionRecord]) -> bool:
    """Return whether records begin with the start of their run: only then can it be repeated."""
    return bool(records) and isinstance(records[0].signal, Start)


def replay(net: Net, recorded: Run, records: Sequence[DecisionRecord]) -> Replay:
    """Repeat a run whose records start at its beginning, from the parameters that it was started with."""
    run = new_run(recorded.job_id, recorded.scope, recorded.run_id, recorded.parameters)
    run = replace(run, early=dict(enumerate(records[0].early, 1)))
    differences = []
    for record in records:
        decided = advance(net, run, record.signal, record.at, record.mirrors)
        if isinstance(decided, Advanced):
            repeated, ignored = changes_of(net, run, decided), ""
            run = decided.run
        else:
            repeated, ignored = Changes(), str(decided.reason)
        if ignored or repeated != record.changes:
            differences.append(Difference(record, repeated, ignored))
    return Replay(run, tuple(differences))


def differing_fields(recorded: Run, repeated: Run) -> tuple[str, ...]:
    """Return the names of the fields in which the state of two runs differs, such as `var:torque`; in order.

    Errors and subjects are compared by their English text, as release 0.9.0 stored them.
    """
    one, other = encode(_in_english(recorded)), encode(_in_english(repeated))
    return tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)))


def _in_english(run: Run) -> Run:
    def stated(of: _WithError) -> _WithError:
        return replace(of, error=str(of.error)) if isinstance(of.error, Text) else of

    associations = {key: stated(association) for key, association in run.associations.items()}
    past = {number: stated(attempt) for number, attempt in run.past.items()}
    notes = {number: replace(note, subject=str(note.subject)) for number, note in run.interventions.items()}
    return replace(stated(run), associations=associations, past=past, interventions=notes)


_UNDER_WAY: Final = frozenset({ActionState.DISPATCHED, ActionState.WAITING, ActionState.UNKNOWN})


class StepSpan(Struct, frozen=True):
    """A step that was active from `begin` to `end`, in milliseconds since the Unix epoch; None while it is active."""

    step: str
    begin: int
    end: int | None


class ActionSpan(Struct, frozen=True):
    """An attempt of an action of a step from its command, or its wait, to its end; `state` is its last state."""

    step: str
    action: str
    begin: int
    end: int | None
    state: ActionState


class PauseSpan(Struct, frozen=True):
    """A pause of the run; `end` is None while it lasts."""

    begin: int
    end: int | None


class InterventionMark(Struct, frozen=True):
    """A person intervened: what, who and why, as text."""

    at: int
    text: Text


class Timeline(Struct, frozen=True):
    """The spans of a run in the order in which they began; `begin` and `end` are those of the records."""

    begin: int
    end: int
    steps: tuple[StepSpan, ...]
    actions: tuple[ActionSpan, ...]
    pauses: tuple[PauseSpan, ...]
    interventions: tuple[InterventionMark, ...] = ()


def timeline(records: Sequence[DecisionRecord]) -> Timeline:
    """Return the timeline of at least one record; what began before the first record is missing."""
    actions = _ActionSpans()
    steps: list[StepSpan] = []
    pauses: list[PauseSpan] = []
    active: dict[str, int] = {}
    for record in records:
        at = record.at
        for change in record.changes.actions:
            actions.follow(change, at)
        for step, is_active in record.changes.steps:
            if is_active:
                active[step] = len(steps)
                steps.append(StepSpan(step, at, None))
            elif (number := active.pop(step, None)) is not None:
                steps[number] = StepSpan(step, steps[number].begin, at)
        match record.signal:
            case Pause():
                pauses.append(PauseSpan(at, None))
            case Resume() if pauses:
                pauses[-1] = PauseSpan(pauses[-1].begin, at)
            case _:
                pass
    marks = tuple(
        InterventionMark(decision_record.at, decision_record.signal.text)
        for decision_record in records
        if isinstance(decision_record.signal, Intervene | Resolve | PersonAnswer)
    )
    return Timeline(records[0].at, records[-1].at, tuple(steps), tuple(actions.spans), tuple(pauses), marks)


class _ActionSpans:
    """The spans of actions so far; a command that was left behind continues under its own key."""

    def __init__(self) -> None:
        self.spans: list[ActionSpan] = []
        self._open: dict[AssociationKey, int] = {}

    def follow(self, change: ActionChange, at: int) -> None:
        """Follow a change: it begins a span, ends one, or changes the state of one that continues."""
        key, state = change.key, change.state
        number = self._open.pop(key, None)
        if number is None and key.is_left_behind:
            number = self._open.pop(key.latest, None)
        if number is not None and (state is ActionState.UNKNOWN or (state in _UNDER_WAY and key.is_left_behind)):
            self.spans[number] = replace(self.spans[number], state=state)
            self._open[key] = number
            return
        if number is not None:
            last = self.spans[number].state
            ended = last if state is None or state in _UNDER_WAY else state
            self.spans[number] = replace(self.spans[number], end=at, state=ended)
        if state is not None and state in _UNDER_WAY:
            self._open[key] = len(self.spans)
            self.spans.append(ActionSpan(key.step, key.action, at, None, state))
