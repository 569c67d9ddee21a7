"""Reads Work Masters, and checks, draws and simulates recipes for the API and the pages."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from edge.chart.marks import Marks, StepMark
from edge.chart.page import draw
from edge.chart.reading import read_chart
from edge.chart.svg import chart_svg
from edge.errors import Refused
from edge.model.exact_value import plain_value
from edge.model.isa95 import LocalizedText, Parameter, WorkMaster
from edge.model.recipe import Recipe, is_recipe_schema, parse_recipe
from edge.sfc.check import shape_faults
from edge.sfc.compiler import RejectedRecipe, compile_recipe
from edge.store import resources
from edge.store.client import Store
from edge.web.recipe_models import (
    ParameterLine,
    RecipeLine,
    RecipeList,
    RecipeResult,
    SimulatedEvent,
    SimulationResult,
)

_MOST_EVENTS: Final = 1000
_MOST_MARKED: Final = 100
"""Faults whose steps are marked; each is looked for in every step."""
_FAULTY: Final = StepMark(active=False, elapsed_ms=0, count=0, fault=True)


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


async def recipe_chart(store: Store, scopes: Sequence[str], scope: str, id: str) -> str:
    """Return the chart of a Work Master as SVG. Raises Refused without a recipe that can be drawn."""
    found = await find_recipe(store, scopes, scope, id)
    result = await check_recipe(found.data, ())
    if not result.chart:
        raise Refused("no_chart", f"Work Master {id!r} has no recipe that can be drawn.", "Check its recipe.")
    return result.chart


async def check_recipe(data: Any, active: Sequence[str]) -> RecipeResult:
    """Return the faults of a recipe, and its chart with marks at the active steps, else at the faulty ones."""
    return await asyncio.to_thread(_check, data, active)


def _check(data: Any, active: Sequence[str]) -> RecipeResult:
    net = compile_recipe(data)
    faults = net.faults if isinstance(net, RejectedRecipe) else ()
    warnings = () if isinstance(net, RejectedRecipe) else net.warnings
    recipe = parse_recipe(data)[0] if isinstance(net, RejectedRecipe) else net.recipe
    return RecipeResult(faults=faults, warnings=warnings, chart=_chart(recipe, faults, active) if recipe else "")


def _chart(recipe: Recipe, faults: Sequence[str], active: Sequence[str]) -> str:
    steps = [each.name for each in recipe.steps]
    found = {each: StepMark(active=True, elapsed_ms=0, count=1) for each in steps if each in active}
    found |= {each: _FAULTY for each in steps if _is_named(each, faults[:_MOST_MARKED])}
    marks = Marks("", found, {}, ()) if found else None
    drawable = next((each for each in (recipe, *_without_faults(recipe)) if _has_shape(each)), None)
    if drawable is None:
        return ""
    try:
        return chart_svg(draw(read_chart(drawable), "", marks))
    except Exception:
        # A faulty recipe may be one that cannot be drawn: its faults are the answer then.
        if not faults:
            raise
        return ""


def _has_shape(recipe: Recipe) -> bool:
    """Return whether a recipe can be drawn: branches that contain themselves have no end, for example."""
    return sum(each.initial for each in recipe.steps) == 1 and not shape_faults(recipe)


def _without_faults(recipe: Recipe) -> Iterator[Recipe]:
    """Yield a recipe without its references to nothing, and without all that joins its steps."""
    steps = {each.name: each for each in recipe.steps}
    known = steps.keys() | {each.name for each in recipe.branches}
    joined = tuple(each for each in recipe.transitions if {each.source, each.target} <= known)
    actions = tuple(each for each in recipe.actions if each.step in steps)
    yield replace(recipe, steps=tuple(steps.values()), transitions=joined, actions=actions)
    apart = tuple(replace(each, initial=number == 0) for number, each in enumerate(steps.values()))
    yield replace(recipe, steps=apart, transitions=(), actions=actions, branches=())


def _is_named(step: str, faults: Sequence[str]) -> bool:
    texts = [each for each in faults if step in each]
    return bool(texts) and any(map(re.compile(rf"(?<!\w){re.escape(step)}(?!\w)").search, texts))


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
