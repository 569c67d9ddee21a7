"""Reads Work Masters and the results of simulations for the API and the pages."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from edge.features.page.recipe_models import ParameterLine, RecipeLine, RecipeList, SimulatedEvent, SimulationResult
from edge.features.page.services import CheckRecipe
from edge.foundation.errors import Refused
from edge.model.exact_value import plain_value
from edge.model.isa95 import LocalizedText, Parameter, WorkMaster
from edge.model.recipe import is_recipe_schema
from edge.store import resources
from edge.store.client import Store

_MOST_EVENTS: Final = 1000


async def list_recipes(store: Store, scopes: Iterable[str]) -> RecipeList:
    """Return the Work Masters of some scopes."""
    found = [(scope, each) for scope in scopes for each in await resources.load_work_masters(store, scope)]
    return RecipeList(recipes=tuple(recipe_line(scope, each) for scope, each in found))


async def find_recipe(store: Store, scopes: Sequence[str], scope: str, id: str) -> WorkMaster:
    """Return a Work Master of a scope of this gateway. Raises Refused for an unknown one."""
    found = await resources.load_work_masters(store, scope, [id]) if scope in scopes else ()
    allowed = (await resources.load_allowed(store, scope)).work_masters if found else ()
    if not found or id not in allowed:
        raise Refused("unknown_recipe", f"there is no Work Master {id!r} in {scope!r}.", "Look at the list of recipes.")
    return found[0]


def recipe_line(scope: str, found: WorkMaster) -> RecipeLine:
    """Return a Work Master in short."""
    return RecipeLine(
        scope=scope,
        id=found.id,
        description=found.description.text if found.description else "",
        has_recipe=found.data is not None and is_recipe_schema(found.dataschema),
        parameters=tuple(map(_parameter, found.parameters or ())),
    )


def _parameter(found: Parameter) -> ParameterLine:
    unit = found.engineering_units.display_name if found.engineering_units else None
    return ParameterLine(
        id=found.id, value=plain_value(found.value), unit=_text(unit), description=_text(*(found.description or ())[:1])
    )


def _text(found: LocalizedText | None = None) -> str:
    return found.text if found else ""


async def recipe_chart(store: Store, scopes: Sequence[str], check: CheckRecipe, scope: str, id: str) -> str:
    """Return the chart of a Work Master as SVG. Raises Refused without a recipe that can be drawn."""
    found = await find_recipe(store, scopes, scope, id)
    result = await check(found.data, ())
    if not result.chart:
        raise Refused("no_chart", f"Work Master {id!r} has no recipe that can be drawn.", "Check its recipe.")
    return result.chart


def simulation_result(trace: dict[str, Any]) -> SimulationResult:
    """Return the trace of `edge simulate --json` as events in the order of time."""
    steps = [(each["t"], 0, each) for each in trace["steps"]]
    commands = [(each["t"], 1, each) for each in trace["commands"]]
    active: dict[str, None] = {}
    events = []
    for t, rank, each in sorted((*steps, *commands), key=lambda found: found[:2])[:_MOST_EVENTS]:
        if rank == 0:
            active.pop(each["step"], None)
            active |= {each["step"]: None} if each["active"] else {}
            text = f"{'▶' if each['active'] else '■'} {each['step']}"
        else:
            text = f"{each['phase']} {each['action']} #{each['attempt']}"
        events.append(SimulatedEvent(t=t, text=text, active=tuple(active)))
    return SimulationResult(
        events=tuple(events),
        warnings=tuple(trace["warnings"]),
        outcome=str(trace["error"] or trace["final"]),
        truncated=len(steps) + len(commands) > len(events),
    )
