"""The lamps of a command as parameters, for people who write recipes (docs/reference/equipment.md)."""

from collections.abc import Sequence

from edge.equipment.action_types import ActionParameter, ActionTypes, command_types, values_of
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.text import Text


def action_types(section: StackLightSettings, _programs: Sequence[str]) -> ActionTypes:
    """Return its commands with the lamps that recipes switch, and the events of its buttons."""
    lamps = [lamp for lamp in section.lamps if lamp not in section.alarms]
    parameters = [ActionParameter(lamp, Text.of("lamp on or off"), values_of([True, False])) for lamp in lamps]
    return command_types(section, parameters, section.buttons)
