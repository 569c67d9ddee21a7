"""Findings about commands and events that no equipment of the station takes, or that are still to be chosen."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Final

from edge.app.features import equipment_kinds
from edge.config import Settings
from edge.equipment.action_types import types_of
from edge.features.recipes.finding import ElementType, FindingKind, RecipeElement, RecipeFinding, finding
from edge.foundation.text import Text
from edge.model.recipe import Action, Interaction
from edge.sfc.net import Net

UNCHOSEN: Final = "?"
"""The type of a new action in the editor, until a person has chosen one."""
_ALIKE: Final = 0.8
"""How alike two types are of which one is taken for a misspelling (`difflib`)."""


def declared_types(settings: Settings) -> tuple[str, ...]:
    """Return the types of commands and events of the equipment of a gateway."""
    return tuple(
        dict.fromkeys(
            action_type.type_id
            for section in settings.southbound.values()
            for action_type in types_of(section, equipment_kinds()[section.kind].action_types)
        )
    )


def type_findings(net: Net, types: Collection[str]) -> Iterator[RecipeFinding]:
    """Yield a fault for each action without a command, and an information for each type that is unknown.

    Without `types` no equipment is known: a recipe is also checked where there is none. An event may come from others
    than equipment: only a type that is almost a known one is reported.
    """
    reported: set[str] = set()
    for number, action in enumerate(net.recipe.actions):
        element = RecipeElement(ElementType.ACTION, action.name, number)
        if action.type_id == UNCHOSEN and action.name not in reported:
            reported.add(action.name)
            yield finding(
                FindingKind.NO_COMMAND,
                element,
                Text.of("action {action}: its command or event is not chosen", action=action.name),
                Text.of("Choose a command or an event of action {action}.", action=action.name),
            )
        elif types and action.type_id not in types and action.type_id not in {*reported, UNCHOSEN}:
            reported.add(action.type_id)
            yield from _unknown(action, element, types)


def _unknown(action: Action, element: RecipeElement, types: Collection[str]) -> Iterator[RecipeFinding]:
    meant = difflib.get_close_matches(action.type_id, sorted(types), 1, _ALIKE)
    if not meant and action.interaction is Interaction.PULL_EVENT:
        return
    remedy = (
        Text.of("Did you mean {meant}?", meant=meant[0])
        if meant
        else Text.of("Choose a type that the equipment takes, or add {type} to its type_ids.", type=action.type_id)
    )
    yield finding(
        FindingKind.UNKNOWN_TYPE,
        element,
        Text.of(
            "action {action}: no equipment of this station takes {type_id}",
            action=action.name,
            type_id=action.type_id,
        ),
        remedy,
    )
