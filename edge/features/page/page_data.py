"""Reads the data of each page: the template with its values, by the address of the page."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from starlette.requests import Request

from edge.features.page import flow_views, gateway_views, job_views, recipe_views, result_views, telemetry_views
from edge.features.page.caller import WebCaller
from edge.features.page.flow_operations import cycle_number
from edge.features.page.gateway_operations import LEVELS, log_page
from edge.features.page.models import JobHistory
from edge.features.page.openapi import openapi
from edge.features.page.operations import MOST_JOBS, job_offset
from edge.features.page.problems import Denied
from edge.features.page.reader import subjects_of, types_of
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.model.engineering_unit import symbol_of
from edge.model.operation import OperationType
from edge.model.role import Role
from edge.ports.tag import TagDefinition
from edge.station.stored_job import load
from edge.store.store_state import find_problems, lag_text

_ON_STATION: Final = 8
_JOBS_OF_PAGE: Final = 100
_MOST_ALARMS: Final = 100
_MOST_TAGS: Final = 200
_MOST_OPERATIONS: Final = 10
_MOST_ROWS: Final = 50
_MOST_VALUES: Final = 20
_MOST_RESULTS: Final = 50
_MOST_DECISIONS: Final = 100

PageData: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a template, and its values."""
Render: TypeAlias = Callable[[WebServices, WebCaller, Request], Awaitable[PageData]]


async def _station(services: WebServices, caller: WebCaller, _: Request) -> PageData:
    store, scopes, now = services.store, services.scopes, services.clock()
    page = await job_views.list_jobs(store, scopes, (), "", MOST_JOBS)
    running = [each for each in page.jobs if each.state in {"Running", "Interrupted"}][:_ON_STATION]
    details = [await job_views.job_detail(store, each.job_order_id, now) for each in running]
    alarms = await telemetry_views.list_alarms(store, caller.languages)
    return "station.html", {
        "jobs": details,
        "queue": [each for each in page.jobs if each.state == "AllowedToStart"][:_ON_STATION],
        "ended": sorted(
            (each for each in page.jobs if each.state in {"Ended", "Aborted"}),
            key=lambda job: job.ended_at.timestamp() if job.ended_at else 0.0,
            reverse=True,
        )[:_ON_STATION],
        "equipment": services.equipment(),
        "alarms": alarms.alarms[:_ON_STATION],
        "subjects": ["jobs", "station", "alarms", *(f"job:{each.job_order_id}" for each in running)],
    }


async def _job(services: WebServices, _: WebCaller, request: Request) -> PageData:
    store, job_id = services.store, request.query_params.get("id", "")
    stored = await load(store, job_id)
    detail = job_views.detail_of(stored, services.clock())
    history = JobHistory(job_order_id=job_id, decisions=())
    if detail.has_chart:
        # A gateway may keep no history.
        with contextlib.suppress(Refused):
            history = await job_views.job_history(store, job_id, _MOST_DECISIONS)
    return "job.html", {
        "detail": detail,
        "history": history,
        "results": result_views.results_of(stored, _MOST_RESULTS).results,
        "subjects": [f"job:{job_id}"],
    }


async def _jobs(services: WebServices, _: WebCaller, request: Request) -> PageData:
    state, text = request.query_params.get("state", ""), request.query_params.get("text", "")
    states = (state,) if state in job_views.STATES else ()
    offset = job_offset(request.query_params.get("offset", ""))
    page = await job_views.list_jobs(services.store, services.scopes, states, text, _JOBS_OF_PAGE, offset)
    return "jobs.html", {
        "page": page,
        "offset": offset,
        "size": _JOBS_OF_PAGE,
        "states": job_views.STATES,
        "state": state,
        "text": text,
        "subjects": ["jobs"],
    }


async def _alarms(services: WebServices, caller: WebCaller, request: Request) -> PageData:
    before = request.query_params.get("before", "")
    found = await telemetry_views.list_alarms(services.store, caller.languages)
    history = await telemetry_views.alarm_history(services.store, before, _MOST_ROWS, caller.languages)
    return "alarms.html", {
        "alarms": found.alarms[:_MOST_ALARMS],
        "history": history,
        "is_oldest": bool(before),
        "subjects": ["alarms"],
    }


async def _tags(services: WebServices, _: WebCaller, request: Request) -> PageData:
    text = request.query_params.get("text", "")
    found = await telemetry_views.list_tags(services.store, text, _MOST_TAGS, services.definition_of)
    charts = await services.trends.control_charts() if services.trends else ()
    return "tags.html", {"page": found, "text": text, "charts": charts[:_MOST_ROWS], "subjects": ["tags"]}


async def _tag(services: WebServices, _: WebCaller, request: Request) -> PageData:
    tag = request.query_params.get("name", "")
    points = await telemetry_views.tag_points(services.store, services.trends, tag)
    newest = telemetry_views.trend(tag, points[-_MOST_VALUES:]).points[::-1]
    known = services.definition_of(tag) or TagDefinition(tag)
    return "tag.html", {
        "tag": tag,
        "unit": symbol_of(known.unit),
        "description": known.description,
        "newest": newest,
        "subjects": ["tags"],
    }


async def _flows(services: WebServices, _caller: WebCaller, _request: Request) -> PageData:
    found = await flow_views.list_flows(services.flows)
    return "flows.html", {"page": found, "subjects": ["flows"]}


async def _flow(services: WebServices, _: WebCaller, request: Request) -> PageData:
    flow_id, cycle = request.query_params.get("id", ""), request.query_params.get("cycle", "")
    detail = await flow_views.flow_detail(flow_views.require_flows(services.flows), flow_id, cycle_number(cycle))
    return "flow.html", {"detail": detail, "cycle": cycle, "subjects": ["flows"]}


async def _recipes(services: WebServices, _caller: WebCaller, _request: Request) -> PageData:
    found = await recipe_views.list_recipes(services.store, services.scopes)
    return "recipes.html", {"recipes": found.recipes, "subjects": []}


async def _recipe(services: WebServices, caller: WebCaller, request: Request) -> PageData:
    scope, id = request.query_params.get("scope", ""), request.query_params.get("id", "")
    found = await recipe_views.find_recipe(services.store, services.scopes, scope, id)
    is_engineer = caller.role >= Role.ENGINEER
    return "recipe.html", {
        "recipe": recipe_views.recipe_line(scope, found),
        "is_engineer": is_engineer,
        "subjects": [],
    }


async def _recipe_check(_services: WebServices, caller: WebCaller, _request: Request) -> PageData:
    require_engineer(caller)
    return "recipe-check.html", {"subjects": []}


async def _gateway(services: WebServices, caller: WebCaller, _: Request) -> PageData:
    store, is_engineer = services.store, caller.role >= Role.ENGINEER
    operations = (await gateway_views.list_operations(store)).operations
    backups = (each.result for each in operations if each.type == OperationType.BACKUP and each.result)
    state = services.store_state()
    return "gateway.html", {
        "servers": state,
        "server_problems": find_problems(state) if state else (),
        "lag_of": lag_text,
        "fleet": (await gateway_views.list_components(store)).components,
        "operations": operations[:_MOST_OPERATIONS],
        "backup": next(backups, ""),
        "locks": (await gateway_views.list_locks(store)).locks[:_MOST_ROWS],
        "sessions": (await gateway_views.list_sessions(store)).sessions[:_MOST_ROWS] if is_engineer else (),
        "people": (await services.tools.people())[:_MOST_ROWS] if is_engineer else (),
        "certificates": (await services.tools.certificates())[:_MOST_ROWS] if is_engineer else (),
        "is_engineer": is_engineer,
        "subjects": ["station"],
    }


async def _doctor(services: WebServices, caller: WebCaller, _: Request) -> PageData:
    require_engineer(caller)
    return "doctor.html", {"findings": await services.tools.examine(), "subjects": []}


async def _log(services: WebServices, caller: WebCaller, request: Request) -> PageData:
    require_engineer(caller)
    level, text = request.query_params.get("level", ""), request.query_params.get("text", "")
    page = log_page(services, level, text)
    return "log.html", {"page": page, "level": level, "text": text, "levels": LEVELS, "subjects": ["log"]}


async def _api(_services: WebServices, _caller: WebCaller, _request: Request) -> PageData:
    return "api.html", await asyncio.to_thread(_read_api)


@functools.lru_cache(maxsize=1)
def _read_api() -> Mapping[str, Any]:
    """Return the operations and types; the document is the same until the end of the process."""
    document = openapi()
    return {"operations": subjects_of(document), "types": types_of(document), "subjects": []}


def require_engineer(caller: WebCaller) -> None:
    """Raise Denied unless the caller has the role engineer."""
    if caller.role < Role.ENGINEER:
        raise Denied(403, "forbidden", "this needs the role engineer.", "Log in as a user with this role.")


PAGES: Final[Mapping[str, Render]] = {
    "/": _station,
    "/job": _job,
    "/jobs": _jobs,
    "/alarms": _alarms,
    "/tags": _tags,
    "/tag": _tag,
    "/recipes": _recipes,
    "/recipe": _recipe,
    "/recipe-check": _recipe_check,
    "/flows": _flows,
    "/flow": _flow,
    "/gateway": _gateway,
    "/doctor": _doctor,
    "/log": _log,
    "/api": _api,
}
"""The pages by their address."""
