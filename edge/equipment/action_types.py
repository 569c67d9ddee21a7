"""The types that actions of recipes name for a piece of equipment, with the parameters of its commands.

A kind declares them with its settings, for people who write recipes; other parameters are allowed.

    ActionParameter("batch_size", Text.of("number of tightenings, from 1 to 99"))
"""

from collections.abc import Iterable, Sequence
from pkgutil import resolve_name
from typing import Any, TypeAlias

from msgspec import Struct

from edge.config import EquipmentSettings
from edge.foundation.text import Text
from edge.model.recipe import Interaction


class ParameterValue(Struct, frozen=True):
    """A value that a parameter may have, as JSON, and its name at the equipment where that is another one."""

    value: Any
    name: str = ""


class ActionParameter(Struct, frozen=True):
    """A parameter of commands: its meaning for people, with range and unit where it has one, and usual values."""

    name: str
    meaning: Text
    values: tuple[ParameterValue, ...] = ()


class ActionType(Struct, frozen=True):
    """A type of commands or events; without `interaction` actions may use it either way."""

    type_id: str
    interaction: Interaction | None = None
    parameters: tuple[ActionParameter, ...] = ()


ActionTypes: TypeAlias = Sequence[ActionType]


def types_of(section: EquipmentSettings, where: str, programs: Sequence[str] = ()) -> ActionTypes:
    """Return the types of a section: by the function of its kind, else those that its settings name."""
    if not where:
        return [ActionType(type_id) for type_id in section.type_ids]
    found: ActionTypes = resolve_name(where)(section, programs)
    return found


def command_types(
    section: EquipmentSettings, parameters: Iterable[ActionParameter], events: Iterable[str]
) -> ActionTypes:
    """Return the types of a section whose commands have the same parameters, and those of its events."""
    parameters = tuple(parameters)
    commands = [ActionType(type_id, Interaction.PUSH_COMMAND, parameters) for type_id in section.type_ids]
    return (*commands, *(ActionType(type_id, Interaction.PULL_EVENT) for type_id in dict.fromkeys(events)))


def values_of(values: Iterable[Any]) -> tuple[ParameterValue, ...]:
    """Return values that need no name."""
    return tuple(map(ParameterValue, values))
