"""The answer to a prompt: the input of a person, and the result of the action that it becomes."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from edge.features.prompts.prompt import LONGEST_ANSWER, FieldType, Prompt, PromptField, PromptKind
from edge.foundation.errors import Refused
from edge.foundation.text import Text, join_texts

CONFIRMED: Final = "confirmed"
CHOICE: Final = "choice"


class GivenAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The input of a person: nothing to confirm, the value of a choice, or values by the names of the fields.

    A number may come as a text, as a person types it.
    """

    choice: Annotated[str, Meta(max_length=100)] = ""
    values: Annotated[Mapping[str, Any], Meta(max_length=12)] = field(default_factory=dict)


class SignedAnswer(GivenAnswer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The input of a person with the signature: a name with its PIN, or the code of a badge."""

    name: Annotated[str, Meta(max_length=64)] = ""
    pin: Annotated[str, Meta(max_length=8)] = ""
    badge: Annotated[str, Meta(max_length=128)] = ""


def result_of(kind: PromptKind, prompt: Prompt, given: GivenAnswer) -> dict[str, Any]:
    """Return the result of the action: `{"confirmed": true}`, `{"choice": "ok"}`, or a value for each field.

    A number with a unit is `{"value": 5.2, "unit": "kg"}`. Raises Refused(`invalid_answer`) with every fault.
    """
    result, faults = _read(kind, prompt, given)
    if given.choice and kind is not PromptKind.CHOOSE:
        faults.append(Text.of("the prompt has no choices"))
    if given.values and kind is not PromptKind.ENTER:
        faults.append(Text.of("the prompt has no fields"))
    if faults:
        raise Refused("invalid_answer", join_texts("; ", faults), "Correct the answer.")
    return result


def _read(kind: PromptKind, prompt: Prompt, given: GivenAnswer) -> tuple[dict[str, Any], list[Text]]:
    match kind:
        case PromptKind.CONFIRM:
            return {CONFIRMED: True}, []
        case PromptKind.CHOOSE:
            allowed = [choice.value for choice in prompt.choices]
            fault = Text.of("the choice is one of: {allowed}", allowed=", ".join(allowed))
            return {CHOICE: given.choice}, [] if given.choice in allowed else [fault]
        case PromptKind.ENTER:
            return _entered(prompt.fields, given.values)


def _entered(fields: Sequence[PromptField], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Text]]:
    names = {item.name for item in fields}
    faults = [Text.of("the prompt has no field {name!r}", name=name) for name in values if name not in names]
    result: dict[str, Any] = {}
    for item in fields:
        value = values.get(item.name)
        if value in (None, ""):
            if not item.optional:
                faults.append(Text.of("{name} is missing", name=item.name))
            continue
        read = _number(item, value) if item.type is FieldType.NUMBER else _text(item, value)
        if isinstance(read, Text):
            faults.append(read)
        else:
            result[item.name] = {"value": read, "unit": item.unit} if item.unit else read
    return result, faults


def _text(item: PromptField, value: object) -> str | Text:
    if not isinstance(value, str) or len(value) > LONGEST_ANSWER:
        return Text.of("{name} is a text of at most {most} characters", name=item.name, most=LONGEST_ANSWER)
    # A code may hold the separator of GS1 (ASCII 29); a person types none of the others.
    if item.type is not FieldType.SCAN and any(not char.isprintable() and char != "\n" for char in value):
        return Text.of("{name} has characters that cannot be printed", name=item.name)
    return value


def _number(item: PromptField, value: object) -> float | Text:
    number = _read_number(value)
    if number is None:
        return Text.of("{name} is a number", name=item.name)
    if item.least is not None and number < item.least:
        return Text.of("{name} is at least {least:g} {unit}", name=item.name, least=item.least, unit=item.unit)
    if item.most is not None and number > item.most:
        return Text.of("{name} is at most {most:g} {unit}", name=item.name, most=item.most, unit=item.unit)
    return number


def _read_number(value: object) -> float | None:
    """Read a number, also one that is typed with a decimal comma; None for anything else."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        text = value.strip().replace(",", ".", 1) if value.count(",") == 1 and "." not in value else value.strip()
        if not text.isascii() or "_" in text:
            return None
        try:
            value = int(text) if text.lstrip("+-").isdecimal() else float(text)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < _LARGEST else None


_LONGEST_NUMBER: Final = 40
_LARGEST: Final = 1e15
"""Beyond it JSON readers round whole numbers."""
