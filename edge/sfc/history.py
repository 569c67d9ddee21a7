"""The record of each decision of a run: the signal, its instant and what it changed, in a compact form.

A record names steps and actions by their places in the recipe that is pinned to the run. The signals alone repeat the
run, since `advance` is pure; the recorded changes show whether a repetition decides the same. The result of an action
is not recorded a second time: the run keeps it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from edge.model.recipe import Intervention
from edge.sfc.changes import Changes, changes_of, decode_changes, encode_changes, first_completed
from edge.sfc.identifiers import AssociationKey, command_id, command_prefix
from edge.sfc.net import Net
from edge.sfc.run import Association, KeptEvent, PastAttempt, Run, key_of_command
from edge.sfc.signal import (
    NO_MIRRORS,
    Abort,
    Advanced,
    Answer,
    Begun,
    Event,
    Granted,
    Intervene,
    Late,
    MirrorCopy,
    Mirrors,
    Pause,
    Resolution,
    Resolve,
    Resume,
    SecondPerson,
    Signal,
    Start,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)


class DecisionRecord(Struct, frozen=True):
    """One decision about a run; `number` counts from 1 and may skip, `at` is in milliseconds since the Unix epoch.

    `early` holds the events that were kept before the start. `is_whole` is false when the run no longer keeps the
    result that the signal brought: then the signal has no data, and the run cannot be repeated. `mirrors` holds what
    the decision asked of mirrored sets.
    """

    number: int
    at: int
    signal: Signal
    changes: Changes
    early: tuple[KeptEvent, ...] = ()
    is_whole: bool = True
    mirrors: Mirrors = field(default_factory=lambda: NO_MIRRORS)


class StoredDecision(Struct, frozen=True):
    """A record as it is stored: the name of the signal; mirrors, changes and members of the signal as one text."""

    number: int
    at: int
    name: str
    text: str


def record_decision(net: Net, before: Run, signal: Signal, advanced: Advanced, number: int, at: int) -> StoredDecision:
    """Return the stored record of a decision that took `before` to the run of `advanced`."""
    changes = changes_of(net, before, advanced)
    name, members = _encode_kept(net, before, signal, advanced, changes) or _encode_signal(before, signal)
    while members and members[-1] is None:
        members.pop()
    text = _json.encode(members).decode() if members else ""
    asked = _sorted_json.encode(advanced.mirrors).decode() if advanced.mirrors else ""
    return StoredDecision(number, at, name, asked + encode_changes(net, changes) + text)


def read_record(net: Net, run: Run, stored: StoredDecision) -> DecisionRecord:
    """Decode a record of a run; raises ValueError for one that cannot be read."""
    try:
        mirrors, rest = _read_mirrors(stored.text)
        found, bracket, text = rest.partition("[")
        changes = decode_changes(net, found)
        members = msgspec.json.decode(bracket + text, type=list[Any]) if bracket else []
        is_whole = True
        if stored.name in {_DONE, _TAKEN}:
            signal, is_whole = _decode_kept(net, run, stored.name, members, changes)
        else:
            signal = _decode_signal(run, stored.name, members)
        early: tuple[KeptEvent, ...] = ()
        if stored.name == _START and members:
            early = tuple(msgspec.convert(member, KeptEvent) for member in members[0])
        return DecisionRecord(stored.number, stored.at, signal, changes, early, is_whole, mirrors)
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"decision {stored.number}: {error!r}") from error


def _read_mirrors(text: str) -> tuple[Mirrors, str]:
    """Return the mirrors that stand at the beginning of a record, and the rest of it."""
    if not text.startswith("{"):
        return NO_MIRRORS, text
    found, end = _FIRST_VALUE.raw_decode(text)
    return msgspec.convert(found, dict[str, MirrorCopy]), text[end:]


_FIRST_VALUE: Final = json.JSONDecoder()
_json: Final = msgspec.json.Encoder()
_sorted_json: Final = msgspec.json.Encoder(order="deterministic")
"""For mirrors, which are sets; a result keeps the order of its members, as the run does."""
_START: Final = "start"
_DONE: Final = "ok"
"""A successful answer whose data the run keeps as the result of the action."""
_TAKEN: Final = "taken"
"""An event that ended a wait; the run keeps its data as the result of the action."""


def _encode_kept(
    net: Net, before: Run, signal: Signal, advanced: Advanced, changes: Changes
) -> tuple[str, list[Any]] | None:
    """Return a signal whose data the run keeps, as its attempt and the place of its action; None for any other signal.

    Left out are the attempt 1 and the place of the first action that the decision completed.
    """
    if isinstance(signal, Answer) and signal.ok and signal.error is None:
        name = _DONE
        key = key_of_command(before, signal.command_id)
    elif isinstance(signal, Event):
        name, key = _TAKEN, advanced.taken
    else:
        return None
    if key is None:
        return None
    attempt = before.associations[key].attempt
    kept = _kept_result(net, advanced.run, key, attempt)
    if kept is None or kept.result is not signal.data:
        return None
    place = None if key.latest == first_completed(changes.actions) else net.actions[key.latest].index
    return name, [attempt if attempt != 1 or place is not None else None, place]


def _decode_kept(net: Net, run: Run, name: str, members: list[Any], changes: Changes) -> tuple[Signal, bool]:
    attempt = members[0] if members else 1
    place = members[1] if len(members) > 1 else None
    key = first_completed(changes.actions) if place is None else list(net.actions)[place]
    if key is None:
        raise ValueError("no action is completed")
    kept = _kept_result(net, run, key, attempt)
    data = kept.result if kept else None
    if name == _TAKEN:
        event_id = kept.event_id if isinstance(kept, Association) else ""
        return Event(net.actions[key].type_id, data, event_id, named=False), kept is not None
    answered = command_id(run.job_id, run.run_id, key.action, attempt, reset=net.actions[key].rule.resets)
    return Answer(answered, ok=True, data=data), kept is not None


def _kept_result(net: Net, run: Run, key: AssociationKey, attempt: int) -> Association | PastAttempt | None:
    """Return the activation of an action that keeps the result of an attempt."""
    wanted = (key.action, key.step, attempt, net.actions[key.latest].rule.resets)
    # Usually the latest one: a search of all takes longer with each step.
    latest = run.associations.get(key)
    if latest is not None and _attempt_of(latest) == wanted:
        return latest
    for association in run.associations.values():
        if _attempt_of(association) == wanted:
            return association
    for past in run.past.values():
        if _attempt_of(past) == wanted and not past.late:
            return past
    return None


def _attempt_of(attempt: Association | PastAttempt) -> tuple[str, str, int, bool]:
    return (attempt.action, attempt.step, attempt.attempt, attempt.reset)


def _encode_signal(run: Run, signal: Signal) -> tuple[str, list[Any]]:
    """Return the name of a signal and its members; a default at the end is None."""
    match signal:
        case Start():
            return _START, [list(run.early.values()) or None]
        case Answer():
            return "answer", [_short(run, signal.command_id), signal.data, None if signal.ok else 0, signal.error]
        case Unknown():
            return "unknown", [_short(run, signal.command_id), signal.reason]
        case Begun():
            return "begun", [_short(run, signal.command_id), signal.by]
        case Withdrawn():
            may_have_left = 1 if signal.may_have_left else None
            return "withdrawn", [_short(run, signal.command_id), signal.reason or None, may_have_left]
        case Resolve():
            decided = [signal.action, signal.resolution, signal.reason, signal.by, signal.data]
            return "resolve", [*decided, _encode_second(signal.second)]
        case Intervene():
            second = _encode_second(signal.second)
            names = [signal.action, signal.step, signal.target]
            return "intervene", [signal.kind, names, signal.reason, signal.by, signal.data, second]
        case Late():
            return "late", [_short(run, signal.command_id), signal.data, signal.error]
        case Event():
            return "event", [signal.type_id, signal.id, int(signal.named), signal.data]
        case Tick():
            return "tick", []
        case Granted():
            return "granted", list(signal.locks)
        case Pause():
            return "pause", []
        case Resume():
            return "resume", []
        case Abort():
            return "abort", [signal.reason or None]
        case Stop():
            return "stop", [signal.reason or None]


def _decode_signal(run: Run, name: str, members: list[Any]) -> Signal:
    first, second, third, fourth, fifth, sixth = (*members, *(None,) * 6)[:6]
    match name:
        case "start":
            return Start()
        case "answer":
            return Answer(_whole(run, first), third is None, second, fourth)
        case "unknown":
            return Unknown(_whole(run, first), second)
        case "begun":
            return Begun(_whole(run, first), second)
        case "withdrawn":
            return Withdrawn(_whole(run, first), second or "", may_have_left=third is not None)
        case "resolve":
            return Resolve(first, Resolution(second), fifth, third, fourth, _decode_second(sixth))
        case "intervene":
            action, step, target = second
            return Intervene(Intervention(first), action, step, target, fifth, third, fourth, _decode_second(sixth))
        case "late":
            return Late(_whole(run, first), second, third)
        case "event":
            return Event(first, fourth, second, named=bool(third))
        case "tick":
            return Tick()
        case "granted":
            return Granted(tuple(members))
        case "pause":
            return Pause()
        case "resume":
            return Resume()
        case "abort":
            return Abort(first or "")
        case "stop":
            return Stop(first or "")
        case _:
            raise ValueError(f"{name!r} is not a signal")


def _encode_second(second: SecondPerson | None) -> list[int] | None:
    return None if second is None else [second.within_ms, int(second.has_login)]


def _decode_second(members: list[int] | None) -> SecondPerson | None:
    return SecondPerson(members[0], bool(members[1])) if members else None


def _short(run: Run, command_id: str) -> str:
    """Return a command id without the part that all commands of a run share."""
    return command_id.removeprefix(command_prefix(run.job_id, run.run_id))


def _whole(run: Run, short: str) -> str:
    return short if short.count("/") > _SHORT_SLASHES else command_prefix(run.job_id, run.run_id) + short


_SHORT_SLASHES: Final = 2
"""How many slashes a short command id has at most: `action/attempt/reset`."""
