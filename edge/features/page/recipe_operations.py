"""The operations of the HTTP API about recipes: list, draw, check, simulate, and order a job."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from edge.app.page_part import ApiCall, ApiOperation, Svg
from edge.features.page import recipe_models
from edge.features.page.models import MethodDone
from edge.features.page.problems import refusal_of, refuse_unless_done, source_of
from edge.features.page.recipe_models import ParameterLine, RecipeLine, RecipeList, SimulatedEvent, SimulationResult
from edge.features.page.services import CheckRecipe, WebServices
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text
from edge.model.isa95 import JobOrder, LocalizedText, OrderCall, Parameter, WorkMaster
from edge.model.job_state import Cause
from edge.model.json_value import plain_value
from edge.model.recipe import is_recipe_schema
from edge.model.user import Role
from edge.station.job_call import JobCall
from edge.station.public_job import public_job
from edge.store import jobs, resources
from edge.store.client import Store

_MOST_EVENTS: Final = 1000


async def list_recipes(store: Store, scopes: Iterable[str]) -> RecipeList:
    """Return the Work Masters of some scopes."""
    found = [(scope, master) for scope in scopes for master in await resources.load_work_masters(store, scope)]
    return RecipeList(recipes=tuple(recipe_line(scope, work_master) for scope, work_master in found))


async def find_recipe(store: Store, scopes: Sequence[str], scope: str, id: str) -> WorkMaster:
    """Return a Work Master of a scope of this gateway. Raises Refused for an unknown one."""
    work_masters = await resources.load_work_masters(store, scope, [id]) if scope in scopes else ()
    allowed = (await resources.load_allowed(store, scope)).work_masters if work_masters else ()
    if not work_masters or id not in allowed:
        raise Refused(
            "unknown_recipe",
            Text.of("there is no Work Master {id!r} in {scope!r}.", id=id, scope=scope),
            "Look at the list of recipes.",
        )
    return work_masters[0]


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
    work_master = await find_recipe(store, scopes, scope, id)
    result = await check(work_master.data, (), ENGLISH)
    if not result.chart:
        raise Refused(
            "no_chart", Text.of("Work Master {id!r} has no recipe that can be drawn.", id=id), "Check its recipe."
        )
    return result.chart


def simulation_result(trace: dict[str, Any]) -> SimulationResult:
    """Return the trace of `edge simulate --json` as events in the order of time."""
    steps = [(step["t"], 0, step) for step in trace["steps"]]
    commands = [(command["t"], 1, command) for command in trace["commands"]]
    active: dict[str, None] = {}
    events = []
    for t, rank, value in sorted((*steps, *commands), key=lambda found: found[:2])[:_MOST_EVENTS]:
        if rank == 0:
            active.pop(value["step"], None)
            active |= {value["step"]: None} if value["active"] else {}
            text = f"{'▶' if value['active'] else '■'} {value['step']}"
        else:
            text = f"{value['phase']} {value['action']} #{value['attempt']}"
        events.append(SimulatedEvent(t=t, text=text, active=tuple(active)))
    return SimulationResult(
        events=tuple(events),
        warnings=tuple(trace["warnings"]),
        outcome=str(trace["error"] or trace["final"]),
        truncated=len(steps) + len(commands) > len(events),
    )


async def _recipes(services: WebServices, _: ApiCall) -> recipe_models.RecipeList:
    return await list_recipes(services.store, services.scopes)


async def _chart(services: WebServices, call: ApiCall) -> Svg:
    scope, id = call.path["scope"], call.path["recipe"]
    return Svg(await recipe_chart(services.store, services.scopes, services.tools.check, scope, id))


async def _check(services: WebServices, call: ApiCall) -> recipe_models.RecipeResult:
    return await services.tools.check(call.body.recipe, call.body.active, call.caller.language)


async def _simulate(services: WebServices, call: ApiCall) -> recipe_models.SimulationResult:
    checked = await services.tools.check(call.body.recipe, (), call.caller.language)
    if checked.faults:
        raise Refused(
            "invalid_recipe",
            Text.of("the recipe has faults: {faults}.", faults="; ".join(checked.faults)[:1000]),
            "Check it.",
        )
    return simulation_result(await services.tools.simulate(call.body.recipe, call.body.script))


async def _order(services: WebServices, call: ApiCall) -> MethodDone:
    job_order_body: recipe_models.JobOrderBody = call.body
    if job_order_body.scope not in services.scopes:
        raise Refused(
            "unknown_scope",
            Text.of("this gateway has no scope {scope!r}.", scope=job_order_body.scope),
            "Look at the status.",
        )
    order = JobOrder(
        job_order_id=job_order_body.id,
        work_master_id=(WorkMaster(id=job_order_body.work_master),),
        priority=job_order_body.priority,
        start_time=job_order_body.start_time,
        job_order_parameters=tuple(Parameter(id=name, value=value) for name, value in job_order_body.parameters.items())
        or None,
    )
    cause = Cause.STORE_AND_START if job_order_body.start else Cause.STORE
    request = JobCall(
        job_order_body.scope,
        cause,
        OrderCall(job_order=order),
        source_of(services),
        call.id,
        languages=call.caller.languages,
    )
    answer = await services.jobs.call(request)
    services.audit.called(call.caller, cause.value, job_order_body.id, job_order_body.work_master, refusal_of(answer))
    refuse_unless_done(answer, cause.value)
    job = await jobs.load(services.store, job_order_body.id)
    return MethodDone(job=public_job(job, call.caller.language) if job else None)


RECIPE_OPERATIONS: Final = (
    ApiOperation("GET", "/recipes", "List the Work Masters.", Role.OBSERVER, recipe_models.RecipeList, _recipes),
    ApiOperation(
        "GET", "/recipes/{scope}/{recipe}/chart.svg", "Return the chart of a recipe.", Role.OBSERVER, Svg, _chart
    ),
    ApiOperation(
        "POST",
        "/recipes/check",
        "Check a recipe, and draw it with its faults or with active steps.",
        Role.ENGINEER,
        recipe_models.RecipeResult,
        _check,
        recipe_models.RecipeBody,
        changes=False,
    ),
    ApiOperation(
        "POST",
        "/recipes/simulate",
        "Simulate a recipe in virtual time with scripted equipment.",
        Role.ENGINEER,
        recipe_models.SimulationResult,
        _simulate,
        recipe_models.SimulationBody,
        changes=False,
    ),
    ApiOperation(
        "POST",
        "/jobs",
        "Store a job order for a Work Master, and allow it to start.",
        Role.ENGINEER,
        MethodDone,
        _order,
        recipe_models.JobOrderBody,
    ),
)
"""The operations about recipes; only an engineer plans, as over OPC UA."""
