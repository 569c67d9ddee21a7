"""Renders the pages on the server: the same data as the API, readable without JavaScript."""

import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote

import jinja2
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from edge import __version__
from edge.chart.marks import duration
from edge.features.page.api import log_in, set_cookie
from edge.features.page.caller import Callers, WebCaller, is_live, languages_of, refuse_other_site
from edge.features.page.german_reasons import reason_in
from edge.features.page.instants import utc
from edge.features.page.job_views import HAS_ENDED
from edge.features.page.models import Login
from edge.features.page.page_data import PAGES, Render
from edge.features.page.page_texts import language_for, text_of
from edge.features.page.problems import Denied, problem_of
from edge.features.page.services import WebServices
from edge.features.page.shared_results import SharedResults
from edge.foundation.errors import EdgeError
from edge.foundation.instant import local
from edge.foundation.ticks import REST_S, in_slices
from edge.model.role import Role
from edge.station.stored_job import StartWait

_HERE: Final = Path(__file__).parent
_MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FORM: Final = "application/x-www-form-urlencoded"


class Pages:
    """The pages of one gateway."""

    def __init__(self, services: WebServices, callers: Callers, shared: SharedResults) -> None:
        self._services = services
        self._shared = shared
        self._callers = callers
        self._templates = templates()

    def routes(self) -> list[Route]:
        """Return the routes of the pages and of their files."""
        routes = [Route(path, functools.partial(self._page, render), methods=["GET"]) for path, render in PAGES.items()]
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
        return await self._error(request, Denied(404, "not_found", self._text(request, "not_found")))

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
            return await self._error(request, error)

    async def _rendered(self, render: Render, request: Request, caller: WebCaller) -> Response:
        template, data = await render(self._services, caller, request)
        return await self._render(template, request, caller, data)

    async def _login_form(self, request: Request) -> Response:
        return await self._render("login.html", request, None, {"problem": "", "name": "", "subjects": []})

    async def _log_in(self, request: Request) -> Response:
        try:
            refuse_other_site(request)
            given = await _form(request)
            login = Login(name=given.get("name", ""), password=given.get("password", ""), code=given.get("code", ""))
            key, _ = await log_in(self._services, request, login)
        except Denied as error:
            problem = self._text(request, "login_refused") if error.kind == "login_refused" else error.message
            data = {"problem": problem, "name": "", "subjects": []}
            return await self._render("login.html", request, None, data, error.status)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = RedirectResponse("/", 303)
        set_cookie(response, self._callers.cookie, key, is_tls=self._services.is_tls)
        return response

    async def _log_out(self, request: Request) -> Response:
        try:
            refuse_other_site(request)
        except Denied as error:
            return await self._error(request, error)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = RedirectResponse("/login", 303)
        set_cookie(response, self._callers.cookie, "", is_tls=self._services.is_tls)
        return response

    async def _error(self, request: Request, error: EdgeError) -> Response:
        status, problem = problem_of(error)
        return await self._render("error.html", request, None, {"problem": problem, "subjects": []}, status)

    async def _render(
        self, template: str, request: Request, caller: WebCaller | None, data: Mapping[str, Any], status: int = 200
    ) -> Response:
        languages = languages_of(request)
        language = language_for(languages)
        pieces = self._templates.get_template(template).generate(
            t=functools.partial(text_of, language=language),
            say=functools.partial(reason_in, language=language),
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
        content = "".join(await in_slices(pieces, REST_S))
        return Response(content, status, headers=headers, media_type="text/html")

    def _text(self, request: Request, key: str) -> str:
        return text_of(key, language_for(languages_of(request)))


@functools.cache
def templates() -> jinja2.Environment:
    """Return the compiled templates; a page that is served again, e.g. after a change of its port, finds them here."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "part": _part,
        "instant": utc,
        "clock": _clock,
        "day": _day,
        "span": duration,
        "shown": _shown,
    }
    environment.globals |= {
        "version": __version__,
        "HAS_ENDED": HAS_ENDED,
        "StartWait": StartWait,
        "css": _stamp("page.css"),
        "js": _stamp("page.js"),
        "recipe_js": _stamp("recipe.js"),
    }
    for name in environment.list_templates():
        environment.get_template(name)
    return environment


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


def _shown(value: object, t: Callable[[str], str]) -> str:
    """Return a value for a person: a truth value as a word, figures with five digits."""
    match value:
        case bool():
            return t("yes" if value else "no")
        case float():
            return f"{value:.5g}"
        case Mapping():
            return ", ".join(f"{name} {_shown(each, t)}" for name, each in value.items())
        case _:
            return str(value)


def _clock(at: datetime | None) -> str:
    # A tenth of the page would be strftime, which looks at the time zone of the host each time.
    return local(at).time().isoformat("seconds") if at else ""


def _day(at: datetime | None) -> str:
    return local(at).replace(tzinfo=None).isoformat(" ", "seconds") if at else ""
