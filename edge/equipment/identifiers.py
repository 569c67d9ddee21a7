"""The identifiers in the parameters of a command: texts, which a device writes into its results."""

from collections.abc import Iterable, Mapping
from typing import Any

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.station.equipment import Command


def identifier(command: Command, name: str) -> str:
    """Return a parameter that is an identifier; empty where it is absent, null or not a text."""
    value = command.parameters.get(name)
    return value.strip() if isinstance(value, str) else ""


def validate_identifiers(command: Command, names: Iterable[str]) -> None:
    """Raise Refused for an identifier that is not a text, such as a number, which would lose its leading zeros."""
    for name in names:
        value = command.parameters.get(name)
        if value is not None and not isinstance(value, str):
            raise _not_a_text(Text.of("the parameter {name}", name=name), value)


def validate_named_identifiers(command: Command, name: str) -> None:
    """Raise Refused for a parameter that is not an object of texts or whole numbers, such as `{"Rotor": "R-7"}`."""
    found: Any = command.parameters.get(name, {})
    if not isinstance(found, Mapping):
        raise Refused(
            "parameters", Text.of("the parameter {name} has to be an object: names and identifiers", name=name)
        )
    for member, value in found.items():
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            raise _not_a_text(Text.of("{member} of the parameter {name}", member=member, name=name), value)


def _not_a_text(subject: Text, value: object) -> Refused:
    return Refused(
        "parameters",
        Text.of("{subject} has to be a text, not {value:.100}", subject=subject, value=repr(value)),
        "Write it in quotes.",
    )
