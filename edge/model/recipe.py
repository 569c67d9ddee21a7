"""Reads a recipe as its author wrote it from JSON, and has its JSON Schema.

A recipe is the `data` of an extended Work Master whose `dataschema` is `RECIPE_DATASCHEMA`. This module validates keys
and types; `edge.sfc.check` validates the chart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from edge.foundation.text import Text, as_text, join_texts, with_nearest
from edge.model.localized_text import AuthorText, read_author_text

RECIPE_DATASCHEMA: Final = "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/"


def is_recipe_schema(dataschema: str | None) -> bool:
    """Return whether a URI names the schema of recipes; its trailing slash may be missing."""
    return dataschema is not None and dataschema.removesuffix("/") == RECIPE_DATASCHEMA.removesuffix("/")


# Far beyond any job, and small enough that every sum of milliseconds stays an exact integer.
MAX_SECONDS: Final = 1_000_000_000

NonEmpty: TypeAlias = Annotated[str, Meta(min_length=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]


class Qualifier(StrEnum):
    """An action qualifier of IEC 61131-3, 6.7.4.4."""

    N = "N"
    P = "P"
    P0 = "P0"
    P1 = "P1"
    S = "S"
    R = "R"
    L = "L"
    D = "D"
    SD = "SD"
    DS = "DS"
    SL = "SL"


class Interaction(StrEnum):
    """The initiator of an action: the station sends a command, or the equipment sends an event."""

    PUSH_COMMAND = "push_command"
    PULL_EVENT = "pull_event"


class BranchType(StrEnum):
    """One of the paths (selection) or all of them (simultaneous)."""

    SELECTION = "selection"
    SIMULTANEOUS = "simultaneous"


class Intervention(StrEnum):
    """What a person may do to a running job where the recipe allows it."""

    RETRY = "retry"
    SKIP = "skip"
    FORCE = "force"
    COMPLETE = "complete"


Interventions: TypeAlias = tuple[Intervention, ...] | UnsetType
"""The allowed interventions; unset, those of the recipe apply."""


OptionalText: TypeAlias = AuthorText | UnsetType
"""A title or a description for people; it never changes what a recipe does."""


Locks: TypeAlias = Annotated[tuple[NonEmpty, ...], Meta(max_length=20)]
"""Names of things that one job at a time may use."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step; exactly one of a recipe is initial. `interventions`: `force` (to leave it) and `complete`.

    While the step is active the job holds each `lock`; it waits for them at most `lock_timeout_seconds` (0: any time).
    Without a `title` people read its name as words.
    """

    name: NonEmpty
    initial: bool = False
    interventions: Interventions = UNSET
    lock: Locks = ()
    lock_timeout_seconds: Seconds = 0
    title: OptionalText = UNSET
    description: OptionalText = UNSET


class Transition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A transition between steps or branches; the lower priority number wins, ties go by list order."""

    source: NonEmpty
    target: NonEmpty
    condition: NonEmpty
    priority: int = 0
    title: OptionalText = UNSET
    description: OptionalText = UNSET


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One association of an action with a step; `duration_seconds` is the T of L, D, SD, DS and SL.

    `interventions`: `retry` and `skip`.
    """

    name: NonEmpty
    step: NonEmpty
    qualifier: Qualifier
    interaction: Interaction
    type_id: NonEmpty
    timeout_seconds: Seconds = 0
    parameters: dict[str, Any] = {}
    duration_seconds: Seconds = 0
    interventions: Interventions = UNSET
    title: OptionalText = UNSET
    description: OptionalText = UNSET


class Branch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A branch; each path is a sequence of step or branch names. Its locks are locks of all its steps."""

    name: NonEmpty
    type: BranchType
    branches: tuple[tuple[str, ...], ...]
    lock: Locks = ()
    lock_timeout_seconds: Seconds = 0


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole recipe; `interventions` applies to every step and action without its own list.

    `verdict` is an expression that is evaluated when the run ends: true and `'ok'`, false and `'not_ok'`, or a text.

    Example: {"steps": [{"name": "Fit", "initial": true}, {"name": "Done"}],
     "transitions": [{"source": "Fit", "target": "Done", "condition": "actions.tighten.done"}],
     "actions": [{"name": "tighten", "step": "Fit", "qualifier": "N", "interaction": "push_command",
     "type_id": "com.example.station.tighten.v1", "timeout_seconds": 60}]}
    """

    steps: tuple[Step, ...]
    transitions: tuple[Transition, ...] = ()
    actions: tuple[Action, ...] = ()
    branches: tuple[Branch, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    verdict: NonEmpty | UnsetType = UNSET
    title: OptionalText = UNSET
    description: OptionalText = UNSET


UNREADABLE: Final = "unreadable"
"""A placeholder for a faulty condition; its value is unknown."""


class _InvalidValue(Exception):
    """A value of another form; `text` names the expected form."""

    def __init__(self, text: str | Text) -> None:
        super().__init__(str(text))
        self.text = as_text(text)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _InvalidValue("must be a string that is not empty")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _InvalidValue("must be true or false")
    return value


def _integer(value: object) -> int:
    # JSON knows one kind of number: 1.0 is 1.
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise _InvalidValue("must be a whole number")
    return int(value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _InvalidValue("must be a number of seconds")
    if not math.isfinite(value) or not 0 <= value <= MAX_SECONDS:
        raise _InvalidValue(Text.of("must be between 0 and {most} seconds", most=MAX_SECONDS))
    return value


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _InvalidValue("must be an object")
    return value


def _paths(value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not all(isinstance(path, list) for path in value):
        raise _InvalidValue("must be a list of paths, each a list of step or branch names")
    if not all(isinstance(name, str) for path in value for name in path):
        raise _InvalidValue("must hold step or branch names only")
    return tuple(tuple(path) for path in value)


def _author_text(value: object) -> AuthorText:
    try:
        return read_author_text(value)
    except ValueError as error:
        raise _InvalidValue(str(error)) from None


def _locks(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _InvalidValue("must be a list of names")
    if len(set(value)) != len(value) or len(value) > _MAX_LOCKS:
        raise _InvalidValue(Text.of("must name each lock once, and {most} at most", most=_MAX_LOCKS))
    return tuple(value)


_MAX_LOCKS: Final = 20


def _one_of(words: type[StrEnum]) -> Callable[[object], StrEnum]:
    str_enums = {word.value: word for word in words}

    def read(value: object) -> StrEnum:
        if not isinstance(value, str) or value not in str_enums:
            raise _InvalidValue(
                Text.of("must be one of {choices}, not {given}", choices=", ".join(str_enums), given=repr(value))
            )
        return str_enums[value]

    return read


def _interventions(*allowed: Intervention) -> Callable[[object], tuple[Intervention, ...]]:
    words = ", ".join(allowed)

    def read(value: object) -> tuple[Intervention, ...]:
        if not isinstance(value, list) or not all(item in allowed for item in value) or len(set(value)) != len(value):
            raise _InvalidValue(Text.of("must be a list of {words}, each once", words=words))
        return tuple(map(Intervention, value))

    return read


class _FieldRule(msgspec.Struct, frozen=True):
    """How one key is read, and the placeholder of an invalid value with which the other faults can be found."""

    read: Callable[[object], Any]
    placeholder: Any = None
    required: bool = True


_TEXTS: Final = {
    "title": _FieldRule(_author_text, UNSET, required=False),
    "description": _FieldRule(_author_text, UNSET, required=False),
}
_LOCK: Final = {
    "lock": _FieldRule(_locks, (), required=False),
    "lock_timeout_seconds": _FieldRule(_seconds, 0, required=False),
}
_STEP: Final = {
    "name": _FieldRule(_text),
    "initial": _FieldRule(_flag, placeholder=False, required=False),
    "interventions": _FieldRule(_interventions(Intervention.FORCE, Intervention.COMPLETE), (), required=False),
    **_LOCK,
    **_TEXTS,
}
_TRANSITION: Final = {
    "source": _FieldRule(_text),
    "target": _FieldRule(_text),
    "condition": _FieldRule(_text, UNREADABLE),
    "priority": _FieldRule(_integer, 0, required=False),
    **_TEXTS,
}
_ACTION: Final = {
    "name": _FieldRule(_text),
    "step": _FieldRule(_text),
    "qualifier": _FieldRule(_one_of(Qualifier), Qualifier.N),
    "interaction": _FieldRule(_one_of(Interaction), Interaction.PUSH_COMMAND),
    "type_id": _FieldRule(_text, "unknown"),
    "timeout_seconds": _FieldRule(_seconds, 0, required=False),
    "parameters": _FieldRule(_object, {}, required=False),
    "duration_seconds": _FieldRule(_seconds, 1, required=False),
    "interventions": _FieldRule(_interventions(Intervention.RETRY, Intervention.SKIP), (), required=False),
    **_TEXTS,
}
_BRANCH: Final = {
    "name": _FieldRule(_text),
    "type": _FieldRule(_one_of(BranchType)),
    "branches": _FieldRule(_paths),
    **_LOCK,
}
_LISTS: Final[dict[str, tuple[type[msgspec.Struct], dict[str, _FieldRule]]]] = {
    "steps": (Step, _STEP),
    "transitions": (Transition, _TRANSITION),
    "actions": (Action, _ACTION),
    "branches": (Branch, _BRANCH),
}
_OF_RECIPE: Final = {
    "interventions": _FieldRule(_interventions(*Intervention)),
    "verdict": _FieldRule(_text),
    **_TEXTS,
}


@functools.cache
def _pascal(key: str) -> str:
    return "".join(word.capitalize() for word in key.split("_"))


@functools.cache
def _spelling(known: tuple[str, ...]) -> Mapping[str, str]:
    """Return the keys by each way in which they may be written; the same few sets of keys are asked for again."""
    return {_pascal(key): key for key in known} | {key: key for key in known}


def _canonical(place: str, data: dict[str, Any], known: dict[str, Any], faults: list[Text]) -> dict[str, Any]:
    """Return the known keys of an object in snake_case; report unknown and repeated keys."""
    spelling = _spelling(tuple(known))
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = spelling.get(key)
        if name is None:
            faults.append(_placed(place, _unknown_key(key, spelling)))
        elif name in found:
            faults.append(_placed(place, Text.of("key {name!r} is given twice", name=name)))
        else:
            found[name] = value
    return found


def _placed(place: str, fault: str | Text) -> Text:
    """Return a fault with its place; the fault alone where the place is the recipe."""
    return join_texts(": ", (place, fault)) if place else as_text(fault)


def _unknown_key(key: str, spelling: Iterable[str]) -> Text:
    """Return the fault of an unknown key, with what its author may have meant, in the spelling of the key."""
    return with_nearest(Text.of("unknown key {key!r}", key=key), key, spelling)


def _read_item(
    place: str, data: object, kind: type[msgspec.Struct], keys: dict[str, _FieldRule], faults: list[Text]
) -> Any | None:
    """Read one step, transition, action or branch; None when an invalid value has no placeholder."""
    if not isinstance(data, dict):
        faults.append(_placed(place, "must be an object"))
        return None
    place += _item_label(data)
    given = _canonical(place, data, keys, faults)
    values: dict[str, Any] = {}
    usable = True
    for name, key in keys.items():
        if name not in given:
            if not key.required:
                continue
            faults.append(_placed(place, Text.of("missing key {name!r}", name=name)))
        else:
            try:
                values[name] = key.read(given[name])
                continue
            except _InvalidValue as invalid:
                faults.append(_placed(place, join_texts(" ", (repr(name), invalid.text))))
        values[name] = key.placeholder
        usable = usable and key.placeholder is not None
    return kind(**values) if usable else None


def _item_label(data: dict[str, Any]) -> str:
    """Return the name of an item, or its ends, to be appended to its place."""
    name, source, target = (data.get(key, data.get(_pascal(key))) for key in ("name", "source", "target"))
    if isinstance(name, str):
        return f" ({name})"
    return f" ({source} → {target})" if isinstance(source, str) and isinstance(target, str) else ""


def parse_recipe(data: object) -> tuple[Recipe | None, tuple[Text, ...]]:
    """Read a recipe from decoded JSON; return it with every fault of its form, each with its place.

    Keys may be snake_case or PascalCase. The recipe is returned despite faults when the rest of it can be
    checked for faults of meaning too; it is valid only when there are no faults.
    """
    if not isinstance(data, dict):
        return None, (Text("a recipe must be an object with steps, transitions, actions and branches"),)
    faults: list[Text] = []
    given = _canonical("", data, {**_LISTS, **_OF_RECIPE}, faults)
    lists: dict[str, Any] = {}
    for name, rule in _OF_RECIPE.items():
        if name not in given:
            continue
        try:
            lists[name] = rule.read(given[name])
        except _InvalidValue as invalid:
            faults.append(join_texts(" ", (repr(name), invalid.text)))
    usable = True
    if "steps" not in given:
        faults.append(Text.of("missing key {name!r}", name="steps"))
        usable = False
    for name, (kind, keys) in _LISTS.items():
        items = given.get(name, [])
        if not isinstance(items, list):
            faults.append(Text.of("{name!r} must be a list", name=name))
            usable = False
            continue
        read = [_read_item(f"{name}[{n}]", item, kind, keys, faults) for n, item in enumerate(items)]
        usable = usable and all(item is not None for item in read)
        lists[name] = tuple(read)
    return (Recipe(**lists) if usable else None), tuple(faults)


def recipe_schema() -> dict[str, Any]:
    """Return the JSON Schema of a recipe: each key in snake_case or in PascalCase, and only once."""
    schema = msgspec.json.schema(Recipe)
    for definition in schema["$defs"].values():
        if "properties" in definition:
            _allow_both_spellings(definition)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": RECIPE_DATASCHEMA, **schema}


def _allow_both_spellings(definition: dict[str, Any]) -> None:
    properties, required = definition["properties"], definition.pop("required", [])
    definition["properties"] = {
        spelling: value for key, value in properties.items() for spelling in (key, _pascal(key))
    }
    definition["allOf"] = [
        {"oneOf": [{"required": [key]}, {"required": [_pascal(key)]}]}
        if key in required
        else {"not": {"required": [key, _pascal(key)]}}
        for key in properties
    ]
