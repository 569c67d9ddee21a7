"""What a recipe asks a person: the parameters of an action of the kind `operator`, and all faults of them.

Example: {"title": "Seat the cable", "choices": [{"value": "ok", "title": "Yes, seated"}, {"value": "defective"}]}
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from edge.model.localized_text import AuthorText
from edge.model.recipe import Interaction, Recipe
from edge.model.user import Role

LONGEST_ANSWER: Final = 1_000
"""Characters of a text that a person enters, of a scanned code, and of a photo reference."""
LEAST_CHOICES: Final = 2
MOST_CHOICES: Final = 6
MOST_FIELDS: Final = 12
_PICTURE: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(png|jpg|jpeg|gif|svg|webp)$"
_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"


class PromptKind(StrEnum):
    """How a person answers: with one button, with one of some buttons, or with values."""

    CONFIRM = "confirm"
    CHOOSE = "choose"
    ENTER = "enter"


class FieldType(StrEnum):
    """What a person enters; `photo` is a reference to one, such as its address or its number."""

    TEXT = "text"
    NUMBER = "number"
    SCAN = "scan"
    PHOTO = "photo"


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """One button: `value` becomes the result `choice`, `title` is on the button."""

    value: Annotated[str, Meta(min_length=1, max_length=100)]
    title: AuthorText | None = None


class PromptField(Struct, frozen=True, forbid_unknown_fields=True, rename={"least": "min", "most": "max"}):
    """One value that a person enters; `unit`, `min` and `max` belong to a number. Both limits are allowed values."""

    name: Annotated[str, Meta(pattern=_NAME)]
    type: FieldType = FieldType.TEXT
    title: AuthorText | None = None
    unit: Annotated[str, Meta(max_length=20)] = ""
    least: float | None = None
    most: float | None = None
    optional: bool = False

    def faults(self) -> Iterator[str]:
        """Yield what contradicts."""
        if self.type is not FieldType.NUMBER and (self.unit or self.least is not None or self.most is not None):
            yield f"field {self.name!r}: unit, min and max belong to the type number"
        if self.least is not None and self.most is not None and self.least > self.most:
            yield f"field {self.name!r}: min {self.least:g} is above max {self.most:g}"


class Prompt(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a prompt.

    `picture` is a file of `[prompts] pictures`. `role` is the lowest role of who answers; with `second_person` another
    person must answer the same. `sign` asks for the PIN or the badge of who answers, at a panel; `any` takes both.
    """

    title: AuthorText
    text: AuthorText | None = None
    picture: Annotated[str, Meta(pattern=_PICTURE)] = ""
    choices: tuple[Choice, ...] = ()
    fields: tuple[PromptField, ...] = ()
    role: Annotated[str, Meta(pattern="^(operator|engineer)?$")] = ""
    second_person: bool = False
    sign: Literal["", "pin", "badge", "any"] = ""

    @property
    def needs_login(self) -> bool:
        """Whether only a person who has logged in may answer: not the MES or a sidecar."""
        return bool(self.role or self.second_person or self.sign)

    @property
    def lowest_role(self) -> Role:
        """The lowest role of who answers."""
        return Role.ENGINEER if self.role == "engineer" else Role.OPERATOR


KEYS: Final = frozenset(Prompt.__struct_fields__)
"""The parameters of a prompt; a job order may bring others, which are ignored."""
_TYPE: Final = re.compile(r"(?:^|\.)operator\.(confirm|choose|enter)\.v1$")


def kind_of(type_id: str) -> PromptKind | None:
    """Return how a person answers an action of a type, such as `com.example.operator.confirm.v1`; None for others."""
    match = _TYPE.search(type_id)
    return PromptKind(match[1]) if match else None


def parse_prompt(kind: PromptKind, parameters: Mapping[str, Any]) -> tuple[Prompt | None, tuple[str, ...]]:
    """Read the parameters of a prompt; return it, or None and all faults."""
    faults = [f"unknown parameter {name!r}" for name in parameters.keys() - KEYS]
    for name, message in _form_faults(parameters):
        faults.append(f"{name}: {message}")
    if "title" not in parameters:
        faults.append("the parameter title is missing")
    if faults:
        return None, tuple(sorted(faults))
    prompt = msgspec.convert(parameters, Prompt)
    found = tuple(_faults(kind, prompt))
    return (None if found else prompt), found


def _form_faults(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each parameter that has not the form of its type, with the reason."""
    types = {field.name: field.type for field in msgspec.structs.fields(Prompt)}
    for name, value in parameters.items():
        if name in types:
            try:
                msgspec.convert(value, types[name])
            except msgspec.ValidationError as error:
                yield name, str(error)


def _faults(kind: PromptKind, prompt: Prompt) -> Iterator[str]:
    if kind is not PromptKind.CHOOSE and prompt.choices:
        yield "choices: they belong to the type operator.choose.v1"
    if kind is not PromptKind.ENTER and prompt.fields:
        yield "fields: they belong to the type operator.enter.v1"
    match kind:
        case PromptKind.CONFIRM:
            return
        case PromptKind.CHOOSE:
            if not LEAST_CHOICES <= len(prompt.choices) <= MOST_CHOICES:
                yield f"choices: expected {LEAST_CHOICES} to {MOST_CHOICES}, not {len(prompt.choices)}"
            yield from _repeated("choices", [choice.value for choice in prompt.choices])
        case PromptKind.ENTER:
            if not 1 <= len(prompt.fields) <= MOST_FIELDS:
                yield f"fields: expected 1 to {MOST_FIELDS}, not {len(prompt.fields)}"
            yield from _repeated("fields", [field.name for field in prompt.fields])
            for field in prompt.fields:
                yield from field.faults()


def _repeated(where: str, names: list[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{where}: {name!r} is given {count} times"


def recipe_faults(recipe: Recipe) -> tuple[str, ...]:
    """Return the faults of all prompts of a recipe, each with its action."""
    return tuple(
        f"action {action.name!r} of step {action.step!r}: {fault}"
        for action in recipe.actions
        if (kind := kind_of(action.type_id)) and action.qualifier != "R"
        for fault in _action_faults(action.interaction, kind, action.parameters)
    )


def _action_faults(interaction: Interaction, kind: PromptKind, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    if interaction is not Interaction.PUSH_COMMAND:
        return ("a prompt is a push_command",)
    return parse_prompt(kind, parameters)[1]
