"""The public form of the history of a job: its decisions, with their signals and what they changed."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.foundation.text import ENGLISH, Text, join_texts
from edge.model.instant import Instant, rfc3339
from edge.sfc.history import Changes, DecisionRecord
from edge.sfc.run import Sending
from edge.sfc.signal import (
    Abort,
    Answer,
    Begun,
    Event,
    Granted,
    Intervene,
    Late,
    Pause,
    PersonAnswer,
    Resolve,
    Resume,
    Signal,
    Start,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)
from edge.station.stored_job import RecordedRun


class ChangedAction(Struct, frozen=True, kw_only=True):
    """An action that a decision changed; `state` is null for one that was removed."""

    step: str
    action: str
    attempt: int | None
    state: str | None


class DecidedCommand(Struct, frozen=True, kw_only=True):
    """A command of a decision: its phase is `start`, `stop` or `reset`."""

    phase: str
    step: str
    action: str


class AskedMirror(Struct, frozen=True, kw_only=True):
    """What a decision asked of a mirrored set: members that it had, and others that it had not."""

    members: tuple[str, ...]
    others: tuple[str, ...]
    stale: bool


class PublicChanges(Struct, frozen=True, kw_only=True):
    """What a decision changed, with the steps that it entered and left."""

    actions: tuple[ChangedAction, ...]
    commands: tuple[DecidedCommand, ...]
    entered: tuple[str, ...]
    left: tuple[str, ...]


class PublicDecision(PublicChanges, frozen=True, kw_only=True):
    """One decision about a job; `text` is its signal for people, `members` are those of the signal."""

    number: int
    at: Instant
    signal: str
    text: str
    members: Any
    mirrors: Mapping[str, AskedMirror]


class PublicHistory(Struct, frozen=True, kw_only=True):
    """The newest decisions about a job, the oldest of them first."""

    job_order_id: str
    scope: str
    decisions: tuple[PublicDecision, ...]


def public_history(recorded: RecordedRun, largest: int | None = None, language: str = ENGLISH) -> PublicHistory:
    """Return the history of a job, with texts in a language.

    A signal of more than `largest` bytes of JSON is stated by its size.
    """
    run = recorded.stored.run
    decisions = tuple(_decision(record, largest, language) for record in recorded.records)
    return PublicHistory(job_order_id=run.job_id, scope=run.scope, decisions=decisions)


def public_changes(changes: Changes) -> PublicChanges:
    """Return what a decision changed."""
    return PublicChanges(**_changes(changes))


def _decision(record: DecisionRecord, largest: int | None, language: str) -> PublicDecision:
    return PublicDecision(
        number=record.number,
        at=rfc3339(record.at),
        signal=type(record.signal).__name__.lower(),
        text=signal_text(record.signal).in_language(language),
        members=_bounded(record.signal, largest),
        mirrors={
            name: AskedMirror(
                members=tuple(sorted(copy.members)), others=tuple(sorted(copy.others or ())), stale=copy.is_stale
            )
            for name, copy in record.mirrors.items()
        },
        **_changes(record.changes),
    )


def _bounded(signal: Signal, largest: int | None) -> Any:
    if largest is None:
        return signal
    size = len(msgspec.json.encode(signal))
    return {"bytes": size} if size > largest else signal


def _changes(changes: Changes) -> dict[str, Any]:
    return {
        "actions": tuple(
            ChangedAction(
                step=change.key.step,
                action=change.key.action,
                attempt=change.key.attempt or None,
                state=change.state.value if change.state else None,
            )
            for change in changes.actions
        ),
        "commands": tuple(
            DecidedCommand(phase=command.phase.value, step=command.step, action=command.action)
            for command in changes.commands
        ),
        "entered": tuple(step for step, active in changes.steps if active),
        "left": tuple(step for step, active in changes.steps if not active),
    }


def signal_text(signal: Signal) -> Text:
    """Return a signal as text for people."""
    match signal:
        case Start() | Tick() | Pause() | Resume():
            return _WORDS[type(signal)]
        case Answer(command_id, ok=True):
            return Text.of("answer to {attempt}: done", attempt=_attempt(command_id))
        case Answer(command_id, error=None | ""):
            return Text.of("answer to {attempt}: failed", attempt=_attempt(command_id))
        case Answer(command_id, error=error):
            return Text.of("answer to {attempt}: failed: {error}", attempt=_attempt(command_id), error=error)
        case Unknown(command_id, reason):
            return Text.of("unknown outcome of {attempt}: {reason}", attempt=_attempt(command_id), reason=reason)
        case Begun(command_id):
            return Text.of("begun {attempt}", attempt=_attempt(command_id))
        case Withdrawn(command_id, reason, may_have_left):
            sending = (Sending.MAYBE if may_have_left else Sending.NEVER).text
            text = Text.of("{attempt} {sending}", attempt=_attempt(command_id), sending=sending)
            return join_texts(": ", (text, reason)) if reason else text
        case Resolve() | Intervene() | PersonAnswer():
            return signal.text
        case Late(command_id):
            return Text.of("late result of {attempt}", attempt=_attempt(command_id))
        case Event(type_id):
            return Text.of("event {type}", type=type_id)
        case Granted(locks):
            return Text.of("lock {lock} granted", lock=", ".join(locks))
        case Abort(reason) | Stop(reason):
            word = _WORDS[type(signal)]
            return join_texts(": ", (word, reason)) if reason else word


_WORDS: Final[Mapping[type, Text]] = {
    Start: Text.of("start"),
    Tick: Text.of("tick"),
    Pause: Text.of("pause"),
    Resume: Text.of("resume"),
    Abort: Text.of("abort"),
    Stop: Text.of("stop"),
}


def _attempt(command_id: str) -> str:
    """Return action and attempt of a command id, with `reset` for a reset."""
    return " ".join(command_id.split("/")[2:])
