"""The stored form of a run.

Each step and association is a field, so a decision writes only what it changed. A field is named by its kind and,
after a colon, by its step, association, variable or number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from edge.foundation.text import Text
from edge.sfc.identifiers import AssociationKey, command_id, parse_association_key
from edge.sfc.run import (
    LOCKS_FIELD,
    NO_LOCKS,
    STATE_FIELD,
    Association,
    FieldKind,
    InterventionNote,
    KeptEvent,
    Outcome,
    PastAttempt,
    Run,
    RunField,
    RunLocks,
    StepState,
)

_T = TypeVar("_T")

_HEAD_FIELD: Final[RunField] = ("run", None)


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """The field `run`: the constant part."""

    job_id: str
    scope: str
    run_id: str
    parameters: dict[str, Any] = {}


class _State(msgspec.Struct, frozen=True, omit_defaults=True):
    """The field `state`: the part about the run as a whole."""

    outcome: Outcome = Outcome.RUNNING
    error: str | Text | None = None
    started_at: int | None = None
    ended_at: int | None = None
    paused_at: int | None = None
    faults: tuple[str, ...] = ()


_json: Final = msgspec.json.Encoder()
_HELD_IN: Final[Mapping[FieldKind, str]] = {
    "step": "steps",
    "action": "associations",
    "stored": "stored",
    "var": "variables",
    "early": "early",
    "past": "past",
    "intervention": "interventions",
}
"""The attribute of a run that holds the fields of a kind, by their keys."""
_STORED_MEMBERS: Final = Association.__struct_fields__.index("action")
"""Members from here on are not stored: they follow from the key and the head."""
_INSTANTS: Final = ("armed_at", "ended_at", "deadline", "due")
"""The members of an association that are instants."""
_INSTANTS_AT: Final = tuple(map(Association.__struct_fields__.index, _INSTANTS))
_NO_STEP: Final = msgspec.structs.astuple(StepState())
_NO_ASSOCIATION: Final = msgspec.structs.astuple(Association())[:_STORED_MEMBERS]
_ABSENT: Final = object()


def _value(run: Run, field: RunField) -> Any:
    """Return what one field holds; `_ABSENT` when the run no longer has it."""
    kind, key = field
    if kind in _HELD_IN:
        return getattr(run, _HELD_IN[kind]).get(key, _ABSENT)
    match kind:
        case "locks":
            return _ABSENT if run.locks == NO_LOCKS else run.locks
        case "state":
            faults = tuple(map(str, run.faults))
            return _State(run.outcome, run.error, run.started_at, run.ended_at, run.paused_at, faults)
        case _:
            return _Head(run.job_id, run.scope, run.run_id, run.parameters)


def _text(value: Any, since: int) -> str:
    """Return the JSON text of what a field holds; the instants of steps and actions count from `since`."""
    if isinstance(value, Association):
        members = list(msgspec.structs.astuple(value)[:_STORED_MEMBERS])
        for at in _INSTANTS_AT:
            if members[at] is not None:
                members[at] -= since
        value = _row(members, _NO_ASSOCIATION)
    elif isinstance(value, StepState):
        value = _row([value.activated_at - since, *msgspec.structs.astuple(value)[1:]], _NO_STEP)
    elif isinstance(value, AssociationKey):
        value = str(value)
    return _json.encode(value).decode()


def _row(members: list[Any], defaults: tuple[Any, ...]) -> list[Any]:
    """Return members without the defaults at their end, compared by identity: 0 and False differ from None."""
    end = len(members)
    while end and members[end - 1] is defaults[end - 1]:
        end -= 1
    return members[:end]


def _fields(run: Run) -> list[RunField]:
    return [
        _HEAD_FIELD,
        STATE_FIELD,
        *((kind, key) for kind, attribute in _HELD_IN.items() for key in getattr(run, attribute)),
        *((LOCKS_FIELD,) if run.locks != NO_LOCKS else ()),
    ]


def _name(field: RunField) -> str:
    """Return the name under which a field is stored."""
    kind, key = field
    return kind if key is None else f"{kind}:{key}"


def encode(run: Run) -> dict[str, str]:
    """Return every field of a run, by its name, with its JSON text."""
    since = run.started_at or 0
    return {_name(field): _text(_value(run, field), since) for field in _fields(run)}


def changed_fields(old: Run, new: Run) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the fields to write, and the names of those to remove, so that the stored run becomes `new`."""
    since, before_since = new.started_at or 0, old.started_at or 0
    # A single decision knows what it touched; otherwise compare.
    is_known = new.revision == old.revision + 1 and since == before_since
    fields = new.touched if is_known else {*_fields(old), *_fields(new)}
    written: dict[str, str] = {}
    removed = []
    for field in sorted(fields):
        value, before = _value(new, field), _value(old, field)
        if value is before and since == before_since:
            continue
        if value is _ABSENT:
            removed.append(_name(field))
            continue
        if _has_same_text(value, before):
            continue
        text = _text(value, since)
        # Equal values may differ in their text: 1, 1.0 and true.
        if value != before or text != _text(before, before_since):
            written[_name(field)] = text
    return written, tuple(removed)


def _has_same_text(value: Any, other: Any) -> bool:
    """Return whether both values surely have the same JSON text. 0.0 and -0.0 are equal, but differ in text."""
    kind = type(value)
    return kind is type(other) and kind in _SCALARS and value == other and (value != 0 or kind is int)


_SCALARS: Final = frozenset({str, int, float, bool})


def decode(fields: Mapping[str, str]) -> Run:
    """Read a run from its fields; fields of other names are ignored."""
    head = msgspec.json.decode(fields["run"], type=_Head)
    state = msgspec.json.decode(fields["state"], type=_State)
    found: dict[str, dict[str, str]] = {f"{kind}:": {} for kind in _HELD_IN}
    for name, text in fields.items():
        kind, colon, key = name.partition(":")
        if colon and kind + colon in found:
            found[kind + colon][key] = text
    since = state.started_at or 0
    steps = {name: _step(since, text) for name, text in found["step:"].items()}
    keys = {text: parse_association_key(text) for text in found["action:"]}
    associations = {keys[name]: _association(head, since, keys[name], text) for name, text in found["action:"].items()}
    return Run(
        job_id=head.job_id,
        scope=head.scope,
        run_id=head.run_id,
        parameters=head.parameters,
        outcome=state.outcome,
        error=state.error,
        started_at=state.started_at,
        ended_at=state.ended_at,
        paused_at=state.paused_at,
        steps=steps,
        associations=associations,
        stored={
            name: parse_association_key(msgspec.json.decode(text, type=str)) for name, text in found["stored:"].items()
        },
        variables={name: msgspec.json.decode(text) for name, text in found["var:"].items()},
        early=_numbered(found["early:"], KeptEvent),
        past=_numbered(found["past:"], PastAttempt),
        interventions=_numbered(found["intervention:"], InterventionNote),
        faults=tuple(map(parse_association_key, state.faults)),
        locks=msgspec.json.decode(fields["locks"], type=RunLocks) if "locks" in fields else NO_LOCKS,
        active=frozenset(name for name, step in steps.items() if step.active),
        open=frozenset(key for key, association in associations.items() if association.is_open),
    )


def _numbered(texts: Mapping[str, str], kind: type[_T]) -> dict[int, _T]:
    """Decode the members of a numbered list, in its order."""
    ordered = sorted(texts.items(), key=lambda item: int(item[0]))
    return {int(number): msgspec.json.decode(text, type=kind) for number, text in ordered}


def _step(since: int, text: str) -> StepState:
    step = msgspec.json.decode(text, type=StepState)
    return msgspec.structs.replace(step, activated_at=step.activated_at + since)


def _association(head: _Head, since: int, key: AssociationKey, text: str) -> Association:
    """Decode an association; the members that its key and the head hold are not in its text."""
    association = msgspec.json.decode(text, type=Association)
    is_armed = association.armed_at is not None
    command = (
        command_id(head.job_id, head.run_id, key.action, association.attempt, reset=association.reset)
        if is_armed
        else ""
    )
    instants = {name: at + since for name in _INSTANTS if (at := getattr(association, name)) is not None}
    return msgspec.structs.replace(association, action=key.action, step=key.step, command_id=command, **instants)
