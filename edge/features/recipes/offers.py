"""What the editor offers for an action: the types that the equipment of the station and stored recipes know."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from edge.app.features import equipment_kinds
from edge.equipment.action_types import ActionType, types_of
from edge.features.recipes.desk import Desk
from edge.features.recipes.workbench_requests import ListActions, ListedActions
from edge.model.recipe import Action, is_recipe_schema
from edge.store.equipment_memory import load_registered_reports
from edge.store.resources import load_work_masters

_MOST_OFFERS: Final = 200
_MOST_VALUES: Final = 200


class ValueOffer(Struct, frozen=True, kw_only=True):
    """A value of a parameter as JSON, and its name at the equipment."""

    value: Any
    name: str = ""


class ParameterOffer(Struct, frozen=True, kw_only=True):
    """A parameter with its meaning; the values of the equipment come first, then those of stored recipes."""

    name: str
    meaning: str = ""
    values: tuple[ValueOffer, ...] = ()


class TypeOffer(Struct, frozen=True, kw_only=True):
    """A type of command or event that the station takes: its equipment, and how an action of a recipe uses it.

    `parameters` are those of a stored recipe with their values, `known` all that may be given.
    """

    type_id: str
    equipment: str = ""
    interaction: str = ""
    timeout_seconds: float = 0
    parameters: Mapping[str, Any] = {}
    known: tuple[ParameterOffer, ...] = ()


async def offers_of(desk: Desk, scope: str, language: str) -> Sequence[TypeOffer]:
    """Return the types of the equipment of the station, and those that stored recipes use, each once."""
    programs = await _programs(desk)
    declared = {
        action_type.type_id: (name, action_type)
        for name, section in desk.settings.southbound.items()
        for action_type in types_of(section, equipment_kinds()[section.kind].action_types, programs.get(name, ()))
    }
    masters = await load_work_masters(desk.store, scope)
    recipes = tuple(master.data for master in masters if is_recipe_schema(master.dataschema))
    used: dict[str, list[Action]] = {}
    # Large recipes are parsed in another process: no job waits for it.
    for action in (await desk.ask(ListActions(recipes), ListedActions)).actions:
        used.setdefault(action.type_id, []).append(action)
    return [
        _offer(*declared.get(type_id, ("", ActionType(type_id))), used.get(type_id, ()), language)
        for type_id in dict.fromkeys((*declared, *used))
    ][:_MOST_OFFERS]


async def _programs(desk: Desk) -> Mapping[str, tuple[str, ...]]:
    """Return what each piece of equipment has last listed, by its name, of all gateways of the station."""
    reports = await load_registered_reports(desk.store, desk.settings.gateway.scopes)
    found: dict[str, dict[str, None]] = {}
    for health in (health for report in reports.values() if report for health in report.equipment):
        found.setdefault(health.name, {}).update(dict.fromkeys(health.programs))
    return {name: tuple(programs) for name, programs in found.items()}


def _offer(equipment: str, declared: ActionType, used: Sequence[Action], language: str) -> TypeOffer:
    example = used[-1] if used else None
    return TypeOffer(
        type_id=declared.type_id,
        equipment=equipment,
        interaction=example.interaction if example else declared.interaction or "",
        timeout_seconds=example.timeout_seconds if example else 0,
        parameters=example.parameters if example else {},
        known=tuple(_known(declared, used, language)),
    )


def _known(declared: ActionType, used: Sequence[Action], language: str) -> Iterable[ParameterOffer]:
    of_recipes: dict[str, list[ValueOffer]] = {}
    for action in used:
        for name, value in action.parameters.items():
            of_recipes.setdefault(name, []).append(ValueOffer(value=value))
    for parameter in declared.parameters:
        values = [ValueOffer(value=item.value, name=item.name) for item in parameter.values]
        yield ParameterOffer(
            name=parameter.name,
            meaning=parameter.meaning.in_language(language),
            values=_once([*values, *of_recipes.pop(parameter.name, ())]),
        )
    yield from (ParameterOffer(name=name, values=_once(values)) for name, values in of_recipes.items())


def _once(values: Iterable[ValueOffer]) -> tuple[ValueOffer, ...]:
    """Return each value once, as it was offered first."""
    found: dict[str, ValueOffer] = {}
    for offer in values:
        found.setdefault(repr(offer.value), offer)
    return tuple(found.values())[:_MOST_VALUES]
