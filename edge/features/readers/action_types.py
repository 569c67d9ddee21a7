"""The events of a reader, for people who write recipes (docs/reference/equipment.md)."""

from collections.abc import Sequence

from edge.equipment.action_types import ActionType, ActionTypes
from edge.features.readers.settings import ReaderSettings
from edge.model.recipe import Interaction


def action_types(section: ReaderSettings, _programs: Sequence[str]) -> ActionTypes:
    """Return the types of its codes: it takes no commands."""
    return [ActionType(type_id, Interaction.PULL_EVENT) for type_id in section.type_ids]
