"""The parameters of a prompt, for people who write recipes (docs/reference/equipment.md)."""

from collections.abc import Sequence
from typing import Final

from edge.equipment.action_types import ActionParameter, ActionType, ActionTypes, values_of
from edge.features.prompts.prompt import PromptKind, kind_of
from edge.features.prompts.settings import OperatorSettings
from edge.foundation.text import Text
from edge.model.recipe import Interaction

_BEFORE: Final = (
    ActionParameter("title", Text.of("what is asked, in short: a text, or texts by language")),
    ActionParameter("text", Text.of("more about it, in the same form")),
    ActionParameter("picture", Text.of("file of the folder of pictures")),
)
_AFTER: Final = (
    ActionParameter("role", Text.of("lowest role of who answers"), values_of(["operator", "engineer"])),
    ActionParameter("second_person", Text.of("another person must answer the same"), values_of([True])),
    ActionParameter("sign", Text.of("signature at a panel of the station"), values_of(["pin", "badge", "any"])),
)
_CHOICES: Final = [{"value": "ok", "title": "OK"}, {"value": "defective"}]
_FIELDS: Final = [{"name": "mass", "type": "number", "unit": "kg", "min": 1, "max": 9}]
_OWN: Final = {
    PromptKind.CONFIRM: (),
    PromptKind.CHOOSE: (ActionParameter("choices", Text.of("two to six buttons"), values_of([_CHOICES])),),
    PromptKind.ENTER: (
        ActionParameter(
            "fields",
            Text.of("one to twelve values, numbers with unit and limits"),
            values_of([_FIELDS]),
        ),
    ),
}


def action_types(section: OperatorSettings, _programs: Sequence[str]) -> ActionTypes:
    """Return its prompts, each with the parameters of how a person answers."""
    return [
        ActionType(type_id, Interaction.PUSH_COMMAND, (*_BEFORE, *_OWN[kind], *_AFTER))
        for type_id in section.type_ids
        if (kind := kind_of(type_id)) is not None
    ]
