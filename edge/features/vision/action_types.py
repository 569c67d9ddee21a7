"""The parameters of a picture, for people who write recipes (docs/reference/equipment.md)."""

from collections.abc import Sequence

from edge.equipment.action_types import ActionParameter, ActionTypes, command_types, values_of
from edge.features.vision.settings import VisionSettings
from edge.foundation.text import Text


def action_types(section: VisionSettings, programs: Sequence[str]) -> ActionTypes:
    """Return its commands with their parameters, and its events."""
    parameters = (
        ActionParameter("recipe_id", Text.of("recipe of the camera"), values_of(programs)),
        ActionParameter("part_id", Text.of("identifier of the part")),
        ActionParameter("meas_id", Text.of("identifier of the measurement; without it the id of the command")),
    )
    return command_types(section, parameters, section.events.values())
