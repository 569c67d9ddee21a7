"""Renders the pages on the server: the same data as the API, readable without JavaScript."""

import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote

import jinja2
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from edge import __version__
from edge.chart.marks import duration
from edge.errors import EdgeError, Refused
from edge.model.role import Role
from edge.web import job_views, telemetry_views
from edge.web.api import log_in, set_cookie
from edge.web.caller import Callers, WebCaller, is_live, languages_of, refuse_other_site
from edge.web.messages import language_for, text_of
from edge.web.models import JobHistory, Login
from edge.web.operations import MOST_JOBS
from edge.web.problems import Denied, problem_of
from edge.web.services import WebServices
from edge.web.shared_results import SharedResults

_HERE: Final = Path(__file__).parent
_MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_ON_STATION: Final = 8
_MOST_ALARMS: Final = 100
_MOST_TAGS: Final = 200
_FORM: Final = "application/x-www-form-urlencoded"

Render = Callable[[WebCaller, Request], Awaitable[tuple[str, Mapping[str, Any]]]]
"""Returns the template of a page and its data."""


class Pages:
    """The pages of one gateway."""

    def __init__(self, services: WebServices, callers: Callers, shared: SharedResults) -> None:
        self._services = services
        self._shared = shared
        self._callers = callers
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"part": _part, "clock": _clock, "day": _day, "span": duration}
        self._templates.globals |= {"version": __version__, "css": _stamp("page.css"), "js": _stamp("page.js")}

    def routes(self) -> list[Route]:
        """Return the routes of the pages and of their files."""
        pages: dict[str, Render] = {
            "/": self._station,
            "/job": self._job,
            "/jobs": self._jobs,
            "/alarms": self._alarms,
            "/tags": self._tags,
        }
        routes = [Route(path, functools.partial(self._page, render), methods=["GET"]) for path, render in pages.items()]
        routes.append(Route("/login", self._login_form, methods=["GET"]))
        routes.append(Route("/login", self._log_in, methods=["POST"]))
        routes.append(Route("/logout", self._log_out, methods=["POST"]))
        routes += [
            Route(f"/static/{path.name}", functools.partial(_file, path.read_bytes(), _MEDIA[path.suffix]))
            for path in sorted((_HERE / "static").iterdir())
        ]
        return routes

    async def missing(self, request: Request) -> Response:
        """Return the page for an address that does not exist."""
        return self._error(request, Denied(404, "not_found", self._text(request, "not_found")))

    async def _page(self, render: Render, request: Request) -> Response:
        try:
            caller = await self._callers.find(request)
            if caller is None:
                return RedirectResponse("/login", 303)
            if not is_live(request):
                return await self._rendered(render, request, caller)
            # The page replaces its parts only, and those are the same for every person with this role.
            key = request.scope["path"], request.scope["query_string"], caller.languages, caller.role
            return await self._shared.get(
                key, functools.partial(self._rendered, render, request, replace(caller, user=""))
            )
        except EdgeError as error:
            return self._error(request, error)

    async def _rendered(self, render: Render, request: Request, caller: WebCaller) -> Response:
        template, data = await render(caller, request)
        return self._render(template, request, caller, data)

    async def _station(self, caller: WebCaller, _: Request) -> tuple[str, Mapping[str, Any]]:
        store, scopes, now = self._services.store, self._services.scopes, self._services.clock()
        page = await job_views.list_jobs(store, scopes, (), "", MOST_JOBS)
        running = [each for each in page.jobs if each.state in {"Running", "Interrupted"}][:_ON_STATION]
        details = [await job_views.job_detail(store, each.job_order_id, now) for each in running]
        alarms = await telemetry_views.list_alarms(store, caller.languages)
        return "station.html", {
            "jobs": details,
            "queue": [each for each in page.jobs if each.state == "AllowedToStart"][:_ON_STATION],
            "ended": [each for each in page.jobs if each.state in {"Ended", "Aborted"}][:_ON_STATION],
            "equipment": self._services.equipment(),
            "alarms": alarms.alarms[:_ON_STATION],
            "subjects": ["jobs", "station", "alarms", *(f"job:{each.job_order_id}" for each in running)],
        }

    async def _job(self, _: WebCaller, request: Request) -> tuple[str, Mapping[str, Any]]:
        store, job_id = self._services.store, request.query_params.get("id", "")
        detail = await job_views.job_detail(store, job_id, self._services.clock())
        history = JobHistory(job_order_id=job_id, decisions=())
        if detail.has_chart:
            # A gateway may keep no history.
            with contextlib.suppress(Refused):
                history = await job_views.job_history(store, job_id)
        return "job.html", {"detail": detail, "history": history, "subjects": [f"job:{job_id}"]}

    async def _jobs(self, _: WebCaller, request: Request) -> tuple[str, Mapping[str, Any]]:
        state, text = request.query_params.get("state", ""), request.query_params.get("text", "")
        states = (state,) if state in job_views.STATES else ()
        page = await job_views.list_jobs(self._services.store, self._services.scopes, states, text, MOST_JOBS)
        return "jobs.html", {
            "page": page,
            "states": job_views.STATES,
            "state": state,
            "text": text,
            "subjects": ["jobs"],
        }

    async def _alarms(self, caller: WebCaller, _: Request) -> tuple[str, Mapping[str, Any]]:
        found = await telemetry_views.list_alarms(self._services.store, caller.languages)
        return "alarms.html", {"alarms": found.alarms[:_MOST_ALARMS], "subjects": ["alarms"]}

    async def _tags(self, _: WebCaller, request: Request) -> tuple[str, Mapping[str, Any]]:
        text = request.query_params.get("text", "")
        found = await telemetry_views.list_tags(self._services.store, text, _MOST_TAGS)
        return "tags.html", {"page": found, "text": text, "subjects": ["tags"]}

    async def _login_form(self, request: Request) -> Response:
        return self._render("login.html", request, None, {"problem": "", "name": "", "subjects": []})

    async def _log_in(self, request: Request) -> Response:
        try:
            refuse_other_site(request)
            given = await _form(request)
            login = Login(name=given.get("name", ""), password=given.get("password", ""), code=given.get("code", ""))
            key, _ = await log_in(self._services, request, login)
        except Denied as error:
            problem = self._text(request, "login_refused") if error.kind == "login_refused" else error.message
            data = {"problem": problem, "name": "", "subjects": []}
            return self._render("login.html", request, None, data, error.status)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = RedirectResponse("/", 303)
        set_cookie(response, self._callers.cookie, key, is_tls=self._services.is_tls)
        return response

    async def _log_out(self, request: Request) -> Response:
        try:
            refuse_other_site(request)
        except Denied as error:
            return self._error(request, error)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = RedirectResponse("/login", 303)
        set_cookie(response, self._callers.cookie, "", is_tls=self._services.is_tls)
        return response

    def _error(self, request: Request, error: EdgeError) -> Response:
        status, problem = problem_of(error)
        return self._render("error.html", request, None, {"problem": problem, "subjects": []}, status)

    def _render(
        self, template: str, request: Request, caller: WebCaller | None, data: Mapping[str, Any], status: int = 200
    ) -> Response:
        languages = languages_of(request)
        language = language_for(languages)
        content = self._templates.get_template(template).render(
            t=functools.partial(text_of, language=language),
            language=language,
            gateway=self._services.gateway,
            path=request.scope["path"],
            caller=caller,
            roles=[each.name.lower() for each in Role if caller and each <= caller.role],
            may_control=caller is not None and caller.role >= Role.OPERATOR,
            status=self._services.status(languages) if caller else None,
            **data,
        )
        headers = {"vary": "accept-language, cookie"}
        return Response(content, status, headers=headers, media_type="text/html")

    def _text(self, request: Request, key: str) -> str:
        return text_of(key, language_for(languages_of(request)))


async def _form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises Denied for another media type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Denied(415, "media_type", "the body is no form.", f"Send it with Content-Type: {_FORM}.")
    body = (await request.body()).decode(errors="replace")
    try:
        return {name: values[0] for name, values in parse_qs(body, max_num_fields=8).items()}
    except ValueError:
        raise Denied(422, "invalid_payload", "the form has too many fields.") from None


async def _file(content: bytes, media_type: str, _: Request) -> Response:
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(content, headers=headers, media_type=media_type)


def _stamp(name: str) -> str:
    """Return the address of a file with a digest, so that browsers may keep it."""
    return f"/static/{name}?{sha256((_HERE / 'static' / name).read_bytes()).hexdigest()[:12]}"


def _part(text: str) -> str:
    return quote(text, safe="")


def _clock(at: datetime | None) -> str:
    return f"{at.astimezone():%H:%M:%S}" if at else ""


def _day(at: datetime | None) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if at else ""
