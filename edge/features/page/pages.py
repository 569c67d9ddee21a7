"""Reads the data of each page by its address, and renders it on the server.

The data are those of the API, readable without JavaScript.
"""

import asyncio
import contextlib
import functools
import gzip
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import jinja2
from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from edge import __version__
from edge.access.web_audit import WebCaller
from edge.app.feature_ports import RecipeFindings
from edge.app.features import page_parts
from edge.app.page_part import AdminLink, PageData, Render, Signature
from edge.features.page import (
    gateway_operations,
    job_views,
    recipe_operations,
)
from edge.features.page.api import PICTURE_HEADERS, log_in, log_in_at_panel, set_cookie
from edge.features.page.attention import URGENT_SEVERITY, by_need, headline_of, read_asks, read_attention
from edge.features.page.caller import Callers, is_live, languages_of, refuse_other_site
from edge.features.page.filters import FILTERS
from edge.features.page.gateway_operations import LEVELS, log_page
from edge.features.page.help_pages import help_page, manual_file, manual_page
from edge.features.page.manual import ADDRESS
from edge.features.page.models import Login
from edge.features.page.openapi import openapi, subjects_of, types_of
from edge.features.page.operations import MOST_JOBS, job_offset
from edge.features.page.problems import Denied, problem_of
from edge.features.page.services import WebServices
from edge.features.page.shared_results import SharedResults
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text, labels, language_for, stated_in
from edge.foundation.ticks import REST_S, in_slices
from edge.model.instant import rfc3339
from edge.model.recipe_name import NO_RECIPE_NAME
from edge.model.user import Role
from edge.station.public_history import PublicHistory
from edge.station.public_job import HAS_ENDED
from edge.station.stored_job import StartWait, load
from edge.store import kept_alarms, resources
from edge.store.dedupe import load_removal
from edge.store.store_state import find_problems, lag_text

_ON_STATION: Final = 8
_JOBS_OF_PAGE: Final = 100
_MOST_OPERATIONS: Final = 10
_MOST_ROWS: Final = 50
_MOST_RESULTS: Final = 50
_MOST_DECISIONS: Final = 100


async def _station(services: WebServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    store, scopes = services.store, services.scopes
    asks = await read_asks(services, caller.languages)
    page = await job_views.list_jobs(store, scopes, (), "", MOST_JOBS, language=caller.language)
    running = [job_summary for job_summary in page.jobs if job_summary.state in {"Running", "Interrupted"}][
        :_ON_STATION
    ]
    details = [
        await job_views.job_detail(services, job_summary.job_order_id, caller.languages) for job_summary in running
    ]
    asked = {ask.job_id for ask in asks}
    # What needs a person stands first.
    details.sort(
        key=lambda detail: detail.job.job_order_id not in asked and not any(w.needs_person for w in detail.waits.words)
    )
    return "station.html", {
        "jobs": details,
        "asks": asks,
        "names_with_pin": _names_with_pin(services, caller),
        "queue": [job_summary for job_summary in page.jobs if job_summary.state == "AllowedToStart"][:_ON_STATION],
        "ended": sorted(
            (job_summary for job_summary in page.jobs if job_summary.state in {"Ended", "Aborted"}),
            key=lambda job: job.ended_at or "",
            reverse=True,
        )[:_ON_STATION],
        "equipment": gateway_operations.list_equipment(services, caller.language).equipment,
        "alarms": by_need(await kept_alarms.load_public(store, caller.languages)),
        "subjects": ["jobs", "station", "alarms", *(f"job:{job_summary.job_order_id}" for job_summary in running)],
    }


def _names_with_pin(services: WebServices, caller: WebCaller) -> Sequence[str]:
    return services.users.names_with_pin() if caller.at_panel else ()


async def _job(services: WebServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    store, job_id = services.store, query.get("id", "")
    try:
        stored_job = await load(store, job_id, services.jobs_clock)
    except Refused:
        removed_at = await load_removal(store, job_id)
        if removed_at is None:
            raise
        return "job-removed.html", {"job_id": job_id, "removed_at": rfc3339(removed_at), "subjects": []}
    detail = job_views.detail_of(services, stored_job, caller.languages)
    history = PublicHistory(job_order_id=job_id, scope=stored_job.job.scope, decisions=())
    if detail.has_chart:
        # A gateway may keep no history.
        with contextlib.suppress(Refused):
            history = await job_views.job_history(store, job_id, caller.language, _MOST_DECISIONS)
    return "job.html", {
        "detail": detail,
        "findings": _findings(services, caller, stored_job.job.recipe.hash),
        "history": history,
        "results": job_views.results_of(stored_job, caller.language, _MOST_RESULTS).results,
        "asks": [ask for ask in await read_asks(services, caller.languages) if ask.job_id == job_id],
        "names_with_pin": _names_with_pin(services, caller),
        "subjects": [f"job:{job_id}"],
    }


def _findings(services: WebServices, caller: WebCaller, recipe_hash: str) -> list[str]:
    """Return the faults and warnings of a recipe for a reader, where a feature finds them."""
    recipes: RecipeFindings | None = services.ports.get("recipes")
    texts = recipes.findings(recipe_hash) if recipes and recipe_hash else ()
    return [text.in_language(caller.language) for text in texts]


async def _jobs(services: WebServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    state, text = query.get("state", ""), query.get("text", "")
    states = (state,) if state in job_views.STATES else ()
    offset = job_offset(query.get("offset", ""))
    page = await job_views.list_jobs(
        services.store, services.scopes, states, text, _JOBS_OF_PAGE, offset, caller.language
    )
    return "jobs.html", {
        "page": page,
        "offset": offset,
        "size": _JOBS_OF_PAGE,
        "states": job_views.STATES,
        "state": state,
        "text": text,
        "subjects": ["jobs"],
    }


async def _recipes(services: WebServices, _caller: WebCaller, _query: Mapping[str, str]) -> PageData:
    recipe_list = await recipe_operations.list_recipes(services.store, services.scopes)
    return "recipes.html", {"recipes": recipe_list.recipes, "subjects": []}


async def _recipe(services: WebServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    scope, id = query.get("scope", ""), query.get("id", "")
    work_master = await recipe_operations.find_recipe(services.store, services.scopes, scope, id)
    is_engineer = caller.role >= Role.ENGINEER
    stored = await resources.load_work_master_at_revision(services.store, id, scope)
    return "recipe.html", {
        "findings": _findings(services, caller, stored.recipe.hash if stored else ""),
        "name": stored.recipe if stored else NO_RECIPE_NAME,
        "recipe": recipe_operations.recipe_line(scope, work_master),
        "is_engineer": is_engineer,
        "subjects": [],
    }


async def _recipe_check(_services: WebServices, caller: WebCaller, _query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    return "recipe-check.html", {"subjects": []}


async def _gateway(services: WebServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    store, is_engineer = services.store, caller.role >= Role.ENGINEER
    operations = (await gateway_operations.list_operations(store, caller.language)).operations
    state = services.store_state()
    return "gateway.html", {
        "servers": state,
        "server_problems": [
            (stated_in(problem.found, caller.language), problem.advice.in_language(caller.language))
            for problem in (find_problems(state) if state else ())
        ],
        "lag_of": lag_text,
        "fleet": (await gateway_operations.list_components(store, caller.language)).components,
        "operations": operations[:_MOST_OPERATIONS],
        "locks": (await gateway_operations.list_locks(store, caller.language)).locks[:_MOST_ROWS],
        "sessions": (await gateway_operations.list_sessions(store)).sessions[:_MOST_ROWS] if is_engineer else (),
        "certificates": (await services.tools.certificates())[:_MOST_ROWS] if is_engineer else (),
        "is_engineer": is_engineer,
        "subjects": ["station"],
    }


async def _doctor(services: WebServices, caller: WebCaller, _: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    found = await gateway_operations.list_findings(services, caller.language)
    return "doctor.html", {"findings": found.findings, "subjects": []}


async def _log(services: WebServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    caller.require(Role.ENGINEER)
    level, text = query.get("level", ""), query.get("text", "")
    page = log_page(services, level, text)
    return "log.html", {"page": page, "level": level, "text": text, "levels": LEVELS, "subjects": ["log"]}


async def _api(_services: WebServices, _caller: WebCaller, _query: Mapping[str, str]) -> PageData:
    return "api.html", await asyncio.to_thread(_read_api)


@functools.lru_cache(maxsize=1)
def _read_api() -> Mapping[str, Any]:
    """Return the operations and types; the document is the same until the end of the process."""
    document = openapi()
    return {"operations": subjects_of(document), "types": types_of(document), "subjects": []}


PAGES: Final[Mapping[str, Render]] = {
    "/": _station,
    "/job": _job,
    "/jobs": _jobs,
    "/recipes": _recipes,
    "/recipe": _recipe,
    "/recipe-check": _recipe_check,
    "/gateway": _gateway,
    "/doctor": _doctor,
    "/log": _log,
    "/api": _api,
    "/help": help_page,
    **{address: render for part in page_parts() for address, render in part.pages.items()},
}
"""The pages by their address."""
_PERSONAL: Final = frozenset(address for part in page_parts() for address in part.personal)
MANUAL: Final[Mapping[str, str]] = {
    "/": "how-to/station-page#the-pages",
    "/job": "how-to/watch-a-job",
    "/jobs": "how-to/watch-a-job",
    "/recipes": "how-to/release-a-recipe",
    "/recipe": "how-to/release-a-recipe",
    "/recipe-check": "how-to/check-a-recipe",
    "/gateway": "how-to/monitoring",
    "/doctor": "how-to/troubleshooting",
    "/log": "how-to/troubleshooting",
    "/api": "reference/http-api",
    **{address: name for part in page_parts() for address, name in part.manual.items()},
}
"""The page of the manual about a page, by its address: a name below docs, with the heading after `#`."""
_FIRST: Final = ("/", "/jobs", "/alarms")
"""What operators need stands first; the rest is behind *More* on a panel."""
LINKS: Final = sorted(
    (
        ("/", "station"),
        ("/jobs", "jobs"),
        ("/recipes", "recipes"),
        *(link for part in page_parts() for link in part.links.items()),
        ("/gateway", "gateway"),
    ),
    key=lambda link: _FIRST.index(link[0]) if link[0] in _FIRST else len(_FIRST),
)
"""What leads to pages from all others: addresses and keys of texts."""
ADMINISTRATION: Final = (
    *(link for part in page_parts() for link in part.administration),
    AdminLink("/doctor", "examine", "engineer"),
    AdminLink("/log", "log", "engineer"),
    AdminLink("/api", "api", "observer"),
)
"""What leads to pages of administration from the page of the gateway."""


_HERE: Final = Path(__file__).parent
_MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PICTURE_S: Final = 3600
"""How long browsers keep a picture of the manual, in seconds."""
_PACKED_FROM: Final = 65_536
"""Bytes from which a page is compressed: a first view transfers at most 150 kB."""
_PACKING: Final = 5
"""The effort of the compression: little time on a small board."""
_FORM: Final = "application/x-www-form-urlencoded"


class LoginPage(Struct, frozen=True):
    """What the form of a login shows; `next` is the page that it leads to."""

    problem: str = ""
    name: str = ""
    names: tuple[str, ...] = ()
    next: str = "/"


class Pages:
    """The pages of one gateway."""

    def __init__(self, services: WebServices, callers: Callers, shared: SharedResults) -> None:
        self._services = services
        self._shared = shared
        self._callers = callers
        self._templates = templates()
        self._panel_css = f":root {{ --target: {services.panels.target}px }}\n".encode() + _static("panel.css")

    def routes(self) -> list[Route]:
        """Return the routes of the pages and of their files."""
        routes = [Route(path, functools.partial(self._page, render), methods=["GET"]) for path, render in PAGES.items()]
        routes.append(Route("/login", self._login_form, methods=["GET"]))
        routes.append(Route("/login", self._log_in, methods=["POST"]))
        routes.append(Route("/logout", self._log_out, methods=["POST"]))
        routes.append(Route(ADDRESS + "{name:path}", self._manual, methods=["GET"]))
        routes += [
            Route(f"/static/{path.name}", functools.partial(_file, path.read_bytes(), _MEDIA[path.suffix]))
            for path in sorted((_HERE / "static").iterdir())
            if path.name != "panel.css"
        ]
        routes += [
            Route(f"{_address(folder)}/{path.name}", functools.partial(_file, path.read_bytes(), _MEDIA[path.suffix]))
            for folder in _static_folders()
            for path in sorted(folder.iterdir())
        ]
        routes.append(Route("/static/panel.css", functools.partial(_file, self._panel_css, "text/css")))
        return routes

    async def missing(self, request: Request) -> Response:
        """Return the page for an address that does not exist."""
        return await self._error(request, Denied(404, "not_found", self._text(request, "not_found")))

    async def _page(self, render: Render, request: Request) -> Response:
        try:
            caller = await self._callers.find(request)
            if caller is None:
                return RedirectResponse(_login_address(request), 303)
            if not is_live(request):
                return await self._rendered(render, request, caller)
            path = request.scope["path"]
            # The page replaces its parts only, and most are the same for every person with this role.
            reader = caller if path in _PERSONAL else replace(caller, user="")
            key = path, request.scope["query_string"], caller.languages, caller.role, caller.at_panel, reader.user
            return await self._shared.get(key, functools.partial(self._rendered, render, request, reader))
        except EdgeError as error:
            return await self._error(request, error)

    async def _rendered(self, render: Render, request: Request, caller: WebCaller) -> Response:
        template, data = await render(self._services, caller, request.query_params)
        additions = [
            await add(self._services, caller, request.query_params)
            for part in page_parts()
            if (add := part.additions.get(request.scope["path"]))
        ]
        return await self._render(template, request, caller, {**data, "additions": additions})

    async def _manual(self, request: Request) -> Response:
        """Return a page, a picture or a file of the manual."""
        name = request.path_params["name"]
        if name.endswith(".html"):
            return await self._page(functools.partial(manual_page, name), request)
        try:
            if await self._callers.find(request) is None:
                return RedirectResponse(_login_address(request), 303)
            file = await manual_file(self._services, name)
        except EdgeError as error:
            return await self._error(request, error)
        kind = "inline" if file.media_type.startswith("image/") else "attachment"
        headers = {
            **PICTURE_HEADERS,
            "cache-control": f"private, max-age={_PICTURE_S}",
            "content-disposition": f'{kind}; filename="{quote(file.name)}"',
        }
        return Response(file.content, headers=headers, media_type=file.media_type)

    async def _login_form(self, request: Request) -> Response:
        names = self._services.users.names_with_pin() if self._callers.at_panel(request) else ()
        by_pin = bool(names) and "password" not in request.query_params
        login = LoginPage(next=_own_address(request.query_params.get("next", "")))
        return await self._login_page(request, replace(login, names=names if by_pin else ()))

    async def _login_page(self, request: Request, page: LoginPage, status: int = 200) -> Response:
        """Return the form: of names and a PIN, without names that of name and password."""
        template = "login-pin.html" if page.names else "login.html"
        is_visitor = False
        with contextlib.suppress(Denied):
            is_visitor = await self._callers.find(request) is not None
        data = {**asdict(page), "has_back": is_visitor, "subjects": []}
        return await self._render(template, request, None, data, status)

    async def _log_in(self, request: Request) -> Response:
        given: Mapping[str, str] = {}
        at_panel = self._callers.at_panel(request)
        try:
            refuse_other_site(request)
            given = await _form(request)
            name = given.get("name", "")
            if "pin" in given:
                signature = Signature(name=name, pin=given["pin"])
                key, _ = await log_in_at_panel(self._services, request, signature, at_panel=at_panel)
            else:
                login = Login(name=name, password=given.get("password", ""), code=given.get("code", ""))
                key, _ = await log_in(self._services, request, login, at_panel=at_panel)
        except Denied as error:
            language = language_for(languages_of(request))
            is_refused = error.kind == "login_refused" and "pin" not in given
            text = error.text.in_language(language)
            problem = labels(language)["login_refused"] if is_refused else f"{text[:1].upper()}{text[1:]}"
            names = self._services.users.names_with_pin() if at_panel and "pin" in given else ()
            name = given.get("name", "") if names else ""
            page = LoginPage(problem, name, tuple(names), _own_address(given.get("next", "")))
            return await self._login_page(request, page, error.status)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = RedirectResponse(_own_address(given.get("next", "")), 303)
        set_cookie(response, self._callers.cookie, key, is_tls=self._services.is_tls)
        return response

    async def _log_out(self, request: Request) -> Response:
        try:
            refuse_other_site(request)
        except Denied as error:
            return await self._error(request, error)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        # The station on a panel with kiosk, else the login.
        response = RedirectResponse("/", 303)
        set_cookie(response, self._callers.cookie, "", is_tls=self._services.is_tls)
        return response

    async def _error(self, request: Request, error: EdgeError) -> Response:
        status, problem = problem_of(error, language_for(languages_of(request)))
        return await self._render("error.html", request, None, {"problem": problem, "subjects": []}, status)

    async def _render(
        self, template: str, request: Request, caller: WebCaller | None, data: Mapping[str, Any], status: int = 200
    ) -> Response:
        languages = languages_of(request)
        language = language_for(languages)
        pieces = self._templates.get_template(template).generate(
            t=labels(language).__getitem__,
            language=language,
            gateway=self._services.gateway,
            path=request.scope["path"],
            login=_login_address(request),
            panel_css=_stamp("panel.css", self._panel_css),
            at_panel=self._callers.at_panel(request),
            panel_idle=self._services.panels.idle_s,
            caller=caller,
            is_stranger=caller is not None and not caller.user,
            roles=[role.name.lower() for role in Role if caller and role <= caller.role],
            reason_for=self._services.reason_for,
            keeps_results="archive" in self._services.ports,
            may_control=caller is not None and caller.role >= Role.OPERATOR,
            status=self._services.status(languages) if caller else None,
            attention=await read_attention(self._services) if caller else None,
            **data,
        )
        headers = {"vary": "accept-encoding, accept-language, cookie"}
        content = "".join(await in_slices(pieces, REST_S)).encode()
        # A refreshed page is shared among browsers, and small: a packed one is not.
        if len(content) > _PACKED_FROM and not is_live(request) and _takes_gzip(request):
            content = await asyncio.to_thread(gzip.compress, content, _PACKING)
            headers["content-encoding"] = "gzip"
        return Response(content, status, headers=headers, media_type="text/html")

    def _text(self, request: Request, key: str) -> str:
        return labels(language_for(languages_of(request)))[key]


def template_folders() -> list[Path]:
    """Return the folder of the templates of the page, and those of features."""
    return [_HERE / "templates", *(part.templates for part in page_parts() if part.templates)]


@functools.cache
def templates() -> jinja2.Environment:
    """Return the compiled templates; a page that is served again, e.g. after a change of its port, finds them here."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folders()),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {**FILTERS, "manual": _manual_address}
    environment.globals |= {
        "version": __version__,
        "static": {folder.parent.name: _address(folder) for folder in _static_folders()},
        "has_page": PAGES.__contains__,
        "FIRST_LINKS": LINKS[: len(_FIRST)],
        "FURTHER_LINKS": LINKS[len(_FIRST) :],
        "ADMINISTRATION": ADMINISTRATION,
        "HAS_ENDED": HAS_ENDED,
        "StartWait": StartWait,
        "URGENT_SEVERITY": URGENT_SEVERITY,
        "headline_of": headline_of,
        "css": _stamp("page.css", _static("page.css")),
        "js": _stamp("page.js", _static("page.js")),
        "away_js": _stamp("away.js", _static("away.js")),
        "badge_js": _stamp("badge.js", _static("badge.js")),
        "keypad_js": _stamp("keypad.js", _static("keypad.js")),
        "recipe_js": _stamp("recipe.js", _static("recipe.js")),
        "chart_js": _stamp("chart.js", _static("chart.js")),
    }
    for name in environment.list_templates():
        environment.get_template(name)
    return environment


def _login_address(request: Request) -> str:
    """Return the address of the login that leads back to the page of a request."""
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    here = _own_address(f"{path}?{query}" if query else path)
    return "/login" if here == "/" else f"/login?next={quote(here, safe='')}"


def _own_address(text: str) -> str:
    """Return the address of a page of this gateway; that of the station for any other text."""
    # Browsers leave a tab or the end of a line out: `/<tab>/host` leads to another site.
    is_local = text.isprintable() and text.startswith("/") and not text.startswith("//")
    path = urlsplit(text).path if is_local else ""
    return text if path in PAGES or path.startswith(ADDRESS) else "/"


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


async def _form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form. Raises Denied for another media type."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise Denied(
            415, "media_type", "the body is not a form.", Text.of("Send it with Content-Type: {form}.", form=_FORM)
        )
    body = (await request.body()).decode(errors="replace")
    try:
        return {name: values[0] for name, values in parse_qs(body, max_num_fields=8).items()}
    except ValueError:
        raise Denied(422, "invalid_payload", "the form has too many fields.") from None


async def _file(content: bytes, media_type: str, _: Mapping[str, str]) -> Response:
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(content, headers=headers, media_type=media_type)


def _static(name: str) -> bytes:
    return (_HERE / "static" / name).read_bytes()


def _stamp(name: str, content: bytes) -> str:
    """Return the address of a file with a digest, so that browsers may keep it."""
    return f"/static/{name}?{sha256(content).hexdigest()[:12]}"


def _static_folders() -> list[Path]:
    """Return the folders of scripts and styles of features."""
    return [part.static for part in page_parts() if part.static]


@functools.cache
def _address(folder: Path) -> str:
    """Return the address of a folder of a feature, with a digest of it all: its scripts import each other."""
    content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    return f"/static/{folder.parent.name}-{sha256(content).hexdigest()[:12]}"


def _manual_address(path: str) -> str:
    """Return the address in the manual of what is about a page; the contents for a page that it does not name."""
    name, _, heading = MANUAL.get(path, "").partition("#")
    address = f"{ADDRESS}docs/{name}.html" if name else ADDRESS.rstrip("/")
    return f"{address}#{heading}" if heading else address
