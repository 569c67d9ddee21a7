"""The operations of the HTTP API about recipes: list, draw, check, simulate, and order a job."""

from typing import Final

from edge.features.page import job_views, recipe_models, recipe_views
from edge.features.page.models import MethodDone
from edge.features.page.operation import ApiCall, ApiOperation, Svg
from edge.features.page.outcome import refusal_of, refuse_unless_done, source_of
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.model.isa95 import JobOrder, OrderCall, Parameter, WorkMaster
from edge.model.job_state import Cause
from edge.model.role import Role
from edge.station.job_call import JobCall
from edge.store import jobs


async def _recipes(services: WebServices, _: ApiCall) -> recipe_models.RecipeList:
    return await recipe_views.list_recipes(services.store, services.scopes)


async def _chart(services: WebServices, call: ApiCall) -> Svg:
    scope, id = call.path["scope"], call.path["recipe"]
    return Svg(await recipe_views.recipe_chart(services.store, services.scopes, services.tools.check, scope, id))


async def _check(services: WebServices, call: ApiCall) -> recipe_models.RecipeResult:
    return await services.tools.check(call.body.recipe, call.body.active)


async def _simulate(services: WebServices, call: ApiCall) -> recipe_models.SimulationResult:
    checked = await services.tools.check(call.body.recipe, ())
    if checked.faults:
        raise Refused("invalid_recipe", f"the recipe has faults: {'; '.join(checked.faults)[:1000]}.", "Check it.")
    return recipe_views.simulation_result(await services.tools.simulate(call.body.recipe, call.body.script))


async def _order(services: WebServices, call: ApiCall) -> MethodDone:
    asked: recipe_models.JobOrderBody = call.body
    if asked.scope not in services.scopes:
        raise Refused("unknown_scope", f"this gateway has no scope {asked.scope!r}.", "Look at the status.")
    order = JobOrder(
        job_order_id=asked.id,
        work_master_id=(WorkMaster(id=asked.work_master),),
        priority=asked.priority,
        start_time=asked.start_time,
        job_order_parameters=tuple(Parameter(id=name, value=value) for name, value in asked.parameters.items()) or None,
    )
    cause = Cause.STORE_AND_START if asked.start else Cause.STORE
    request = JobCall(
        asked.scope,
        cause,
        OrderCall(job_order=order),
        source_of(services),
        call.id,
        languages=call.caller.languages,
    )
    answer = await services.jobs.call(request)
    services.audit.called(call.caller, cause.value, asked.id, asked.work_master, refusal_of(answer))
    refuse_unless_done(answer, cause.value)
    found = await jobs.load(services.store, asked.id)
    return MethodDone(job=job_views.job_summary(found) if found else None)


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
    ),
    ApiOperation(
        "POST",
        "/recipes/simulate",
        "Simulate a recipe in virtual time with scripted equipment.",
        Role.ENGINEER,
        recipe_models.SimulationResult,
        _simulate,
        recipe_models.SimulationBody,
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
