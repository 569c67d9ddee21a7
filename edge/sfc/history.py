"""The record of each decision of a run: the signal, its instant and what it changed, as a JSON array.

A record names steps and actions by their places in the recipe that is pinned to the run. The signals alone repeat the
run, since `advance` is pure; the recorded changes show whether a repetition decides the same. The result of an action
is not recorded a second time: the run keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from edge.foundation.text import Text
from edge.model.recipe import Intervention
from edge.sfc.identifiers import AssociationKey, command_id, command_prefix
from edge.sfc.net import Net
from edge.sfc.old_history import read_old_record
from edge.sfc.run import ActionState, Association, KeptEvent, PastAttempt, Run, key_of_command
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
    PersonAnswer,
    Phase,
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


class ActionChange(Struct, frozen=True):
    """An association in a new state, or a new attempt; `state` is None when the association was removed."""

    key: AssociationKey
    state: ActionState | None


class CommandChange(Struct, frozen=True):
    """A command that was requested."""

    phase: Phase
    step: str
    action: str


class Changes(Struct, frozen=True):
    """What a decision changed: actions in the order of the recipe, commands and steps in the order of the decision.

    A step is paired with whether it became active.
    """

    actions: tuple[ActionChange, ...] = ()
    commands: tuple[CommandChange, ...] = ()
    steps: tuple[tuple[str, bool], ...] = ()


def changes_of(net: Net, before: Run, advanced: Advanced) -> Changes:
    """Return what a single decision changed of a run."""
    after = advanced.run
    changed = []
    for kind, key in after.touched:
        if kind == "action":
            was, now = before.associations.get(key), after.associations.get(key)
            if now is None:
                changed.append(ActionChange(key, None))
            elif was is None or (was.state, was.attempt) != (now.state, now.attempt):
                changed.append(ActionChange(key, now.state))
    if len(changed) > 1:
        changed.sort(key=_order_in(net))
    commands = tuple(CommandChange(request.phase, request.step, request.action) for request in advanced.requests)
    return Changes(tuple(changed), commands, tuple((step.step, step.active) for step in advanced.steps))


def _order_in(net: Net) -> Callable[[ActionChange], tuple[int, AssociationKey]]:
    return lambda change: (net.actions[change.key.latest].index, change.key)


def first_completed(actions: Sequence[ActionChange]) -> AssociationKey | None:
    """Return the key of the first completed action, that of its latest activation; None when none is completed."""
    for action in actions:
        if action.state is ActionState.COMPLETED:
            return action.key.latest
    return None


_STATES: Final = {
    ActionState.PENDING: "p",
    ActionState.DISPATCHED: "d",
    ActionState.WAITING: "w",
    ActionState.COMPLETED: "c",
    ActionState.FAILED: "f",
    ActionState.TIMED_OUT: "t",
    ActionState.STOPPED: "s",
    ActionState.UNKNOWN: "u",
    None: "x",
}
_PHASES: Final = {Phase.START: "B", Phase.STOP: "T", Phase.RESET: "Q", Phase.PAUSE: "P", Phase.RESUME: "C"}
_DISPATCHING: Final = {Phase.START: "S", Phase.RESET: "R"}
"""A command together with the dispatch of its action."""
_STATE_OF: Final = {code: state for state, code in _STATES.items()}
_PHASE_OF: Final = {code: phase for codes in (_PHASES, _DISPATCHING) for phase, code in codes.items()}


def encode_changes(net: Net, changes: Changes) -> tuple[list[Any], list[int]]:
    """Return changes as two lists: `[2, "c", 3, "S"]`, places of actions and codes, and `[1, 0, 2, 1]`, steps and X.

    This is: action 2 completed, 3 dispatched and started, step 1 left, step 2 entered. The place of an activation that
    was left behind is a list with its attempt, `[3, 1]`.
    """
    commands = [(_place(net, command), command.phase) for command in changes.commands]
    commanded = {place for place, phase in commands if phase in _DISPATCHING}
    started = set()
    codes: list[Any] = []
    for change in changes.actions:
        place = net.actions[change.key.latest].index
        if change.key.is_left_behind:
            codes += (place, change.key.attempt), _STATES[change.state]
        elif change.state is ActionState.DISPATCHED and place in commanded:
            started.add(place)
        else:
            codes += place, _STATES[change.state]
    for place, phase in commands:
        is_start = phase in _DISPATCHING and place in started
        started -= {place} if is_start else set()
        codes += place, (_DISPATCHING if is_start else _PHASES)[phase]
    return codes, [number for step, active in changes.steps for number in (net.steps[step].index, int(active))]


def _place(net: Net, command: CommandChange) -> int:
    """Return the place of the first association in the recipe that requests such a command."""
    resets = command.phase is Phase.RESET
    net_actions = [action for action in net.steps[command.step].actions if action.name == command.action]
    for item in net_actions:
        if item.rule.resets is resets:
            return item.index
    return net_actions[0].index


def decode_changes(net: Net, codes: Sequence[Any], places: Sequence[int]) -> Changes:
    """Read changes; raises ValueError, TypeError or LookupError for any other lists."""
    # A place below zero is refused.
    keys, names = dict(enumerate(net.actions)), dict(enumerate(net.steps))
    actions, commands = [], []
    for place, code in zip(codes[::2], codes[1::2], strict=True):
        index, attempt = (place, 0) if isinstance(place, int) else place
        key = keys[index]
        if code in _PHASE_OF:
            commands.append(CommandChange(_PHASE_OF[code], key.step, key.action))
        if code in _DISPATCHING.values():
            actions.append(ActionChange(key, ActionState.DISPATCHED))
        elif code not in _PHASE_OF:
            actions.append(ActionChange(key.left_behind(attempt), _STATE_OF[code]))
    actions.sort(key=_order_in(net))
    steps = tuple((names[place], bool(active)) for place, active in zip(places[::2], places[1::2], strict=True))
    return Changes(tuple(actions), tuple(commands), steps)


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
    """A record as it is stored: the name of the signal; changes, members of the signal and mirrors as a JSON array."""

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
    record: list[Any] = [*encode_changes(net, changes)]
    if members or advanced.mirrors:
        record.append(members)
    if advanced.mirrors:
        record.append(msgspec.Raw(_sorted_json.encode(advanced.mirrors)))
    return StoredDecision(number, at, name, _json.encode(record).decode())


def read_record(net: Net, run: Run, stored: StoredDecision) -> DecisionRecord:
    """Decode a record of a run, also of an earlier release; raises ValueError for one that cannot be read."""
    try:
        old = None if stored.text.startswith("[[") else read_old_record(net, stored.text)
        record = msgspec.json.decode(stored.text, type=_Record) if old is None else msgspec.convert(old, _Record)
        changes, members, is_whole = decode_changes(net, record.codes, record.steps), record.members, True
        if stored.name in {_DONE, _TAKEN}:
            signal, is_whole = _decode_kept(net, run, stored.name, members, changes)
        else:
            signal = _decode_signal(run, stored.name, members)
        early: tuple[KeptEvent, ...] = ()
        if stored.name == _START and members:
            early = tuple(msgspec.convert(member, KeptEvent) for member in members[0])
        return DecisionRecord(stored.number, stored.at, signal, changes, early, is_whole, record.mirrors)
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"decision {stored.number}: {error!r}") from error


class _Record(Struct, array_like=True):
    """The stored form of a record: changes of actions and of steps, members of the signal, mirrors."""

    codes: list[Any]
    steps: list[int]
    members: list[Any] = []
    mirrors: dict[str, MirrorCopy] = {}


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
        case PersonAnswer():
            answered = [_short(run, signal.command_id), signal.data, signal.by]
            return "person", [*answered, _encode_second(signal.second)]
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
            return Answer(_whole(run, first), third is None, second, _stated(fourth))
        case "unknown":
            return Unknown(_whole(run, first), _stated(second) or "")
        case "begun":
            return Begun(_whole(run, first), second)
        case "withdrawn":
            return Withdrawn(_whole(run, first), _stated(second) or "", may_have_left=third is not None)
        case "resolve":
            return Resolve(first, Resolution(second), fifth, third, fourth, _decode_second(sixth))
        case "intervene":
            action, step, target = second
            return Intervene(Intervention(first), action, step, target, fifth, third, fourth, _decode_second(sixth))
        case "person":
            return PersonAnswer(_whole(run, first), second, third, _decode_second(fourth))
        case "late":
            return Late(_whole(run, first), second, _stated(third))
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
            return Abort(_stated(first) or "")
        case "stop":
            return Stop(_stated(first) or "")
        case _:
            raise ValueError(f"{name!r} is not a signal")


def _stated(value: Any) -> str | Text | None:
    """Read an error or a reason: a string is of equipment, a person, or release 0.9.0."""
    return msgspec.convert(value, str | Text | None)


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
