"""Serves the operations of the HTTP API, login and logout, the stream of changes, and the OpenAPI document."""

import functools
import http
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec
import structlog
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from edge.access.login import Credentials, LoginRefusal
from edge.access.web_audit import WebCaller
from edge.app.page_part import ApiCall, ApiOperation, Download, Signature, Signer, Streamed, Svg, Upload
from edge.features.page import models
from edge.features.page.caller import Callers, address_of, languages_of, refuse_other_site
from edge.features.page.guard import path_part
from edge.features.page.openapi import KEY_HEADER, PREFIX, openapi
from edge.features.page.operations import OPERATIONS, identity
from edge.features.page.problems import Denied, problem_of
from edge.features.page.services import WebServices
from edge.features.page.shared_results import SharedResults
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text, language_for
from edge.model.instant import to_microseconds
from edge.model.user import Role

logger = structlog.get_logger(__name__)

_JSON: Final = "application/json"
GZIP: Final = "application/gzip"
PICTURE_HEADERS: Final = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
"""Of pictures that are opened on their own: they load and execute nothing."""
_PING_S: Final = 5.0
_INSTANTS: Final = ("start_time",)

_T = TypeVar("_T")
Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The HTTP API of one gateway."""

    def __init__(self, services: WebServices, callers: Callers, shared: SharedResults) -> None:
        self._services = services
        self._callers = callers
        self._shared = shared
        self._document = b""

    def routes(self) -> list[Route]:
        """Return the routes of every operation."""
        routes = [
            _route(api_operation, functools.partial(self._execute, api_operation)) for api_operation in OPERATIONS
        ]
        routes.append(Route(f"{PREFIX}/session", answering_problems(self._log_in), methods=["POST"]))
        routes.append(Route(f"{PREFIX}/session/panel", answering_problems(self._log_in_at_panel), methods=["POST"]))
        routes.append(Route(f"{PREFIX}/session", answering_problems(self._log_out), methods=["DELETE"]))
        routes.append(Route(f"{PREFIX}/events", answering_problems(self._events), methods=["GET"]))
        routes.append(Route(f"{PREFIX}/openapi.json", answering_problems(self._openapi), methods=["GET"]))
        return routes

    async def _execute(self, operation: ApiOperation, request: Request) -> Response:
        caller = await self._authorized(request, operation)
        path = {name: path_part(text) for name, text in request.path_params.items()}
        body = await _body(request, operation.body) if operation.body else None
        call = ApiCall(caller, path, request.query_params, body, _request_id(request, caller))
        execute = functools.partial(operation.execute, self._services, call)
        if operation.answer is Svg:
            # As pages are shared: what a role sees may differ.
            given = (*path.values(), *map(request.query_params.get, operation.query))
            key = operation.path, caller.language, caller.role, *given
            answer = await self._shared.get(key, execute)
        else:
            answer = await execute()
        if operation.method != "GET" and operation.changes:
            self._services.events.note_call()
        match answer:
            case Svg(document):
                return Response(document, media_type="image/svg+xml", headers=PICTURE_HEADERS)
            case Download(content, name, media_type):
                return Response(content, media_type=media_type, headers=_attachment(name))
            case Streamed(pieces, name, media_type):
                return StreamingResponse(pieces, media_type=media_type, headers=_attachment(name))
            case _:
                return json_response(answer)

    async def _authorized(self, request: Request, operation: ApiOperation) -> WebCaller:
        caller = await self._callers.find(request)
        if caller is None:
            raise Denied(401, "login_required", "this needs a login.", "Log in, or send a user name and a token.")
        if caller.role < operation.role:
            action = f"{operation.method} {operation.path}"
            self._services.audit.refused_role(caller, action)
            needed = operation.role.text
            raise Denied(
                403,
                "forbidden",
                Text.of("this needs the role {needed}.", needed=needed),
                "Log in as a user with this role.",
            )
        return caller

    async def _log_in(self, request: Request) -> Response:
        refuse_other_site(request)
        given, at_panel = await decoded(request, models.Login), self._callers.at_panel(request)
        return self._logged_in(request, *await log_in(self._services, request, given, at_panel=at_panel))

    async def _log_in_at_panel(self, request: Request) -> Response:
        refuse_other_site(request)
        given, at_panel = await decoded(request, Signature), self._callers.at_panel(request)
        return self._logged_in(request, *await log_in_at_panel(self._services, request, given, at_panel=at_panel))

    def _logged_in(self, request: Request, key: str, caller: WebCaller) -> Response:
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = json_response(identity(caller))
        set_cookie(response, self._callers.cookie, key, is_tls=self._services.is_tls)
        return response

    async def _log_out(self, request: Request) -> Response:
        refuse_other_site(request)
        self._services.sessions.end_key(request.cookies.get(self._callers.cookie, ""))
        response = Response(status_code=http.HTTPStatus.NO_CONTENT)
        set_cookie(response, self._callers.cookie, "", is_tls=self._services.is_tls)
        return response

    async def _events(self, request: Request) -> Response:
        caller = await self._callers.find(request)
        if caller is None:
            raise Denied(401, "login_required", "this needs a login.", "Log in, or send a user name and a token.")
        if self._services.events.is_full(caller.user):
            raise Denied(503, "too_many_pages", "too many pages follow changes already.", "Close one of them.")
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(self._changes(caller), media_type="text/event-stream", headers=headers)

    async def _changes(self, caller: WebCaller) -> AsyncIterator[bytes]:
        """Yield changes until the session ends; an event in quiet times shows that the connection works."""
        try:
            with self._services.events.subscribe(caller.user) as subscription:
                yield b"retry: 2000\n: changes follow\n\n"
                while not caller.session or self._services.sessions.alive(caller.session):
                    if subjects := await subscription.take(_PING_S):
                        pages = self._services.events.subscribers
                        notice = msgspec.json.encode(models.ChangeNotice(subjects=subjects, pages=pages))
                        yield b"event: change\ndata: " + notice + b"\n\n"
                    else:
                        yield b"event: quiet\ndata: {}\n\n"
                yield b"event: logout\ndata: {}\n\n"
        except Refused:
            yield b"event: refused\ndata: {}\n\n"

    async def _openapi(self, _: Request) -> Response:
        self._document = self._document or msgspec.json.encode(openapi())
        return Response(self._document, media_type=_JSON)


async def _body(request: Request, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return the body of a request. Raises as `decoded` does."""
    if kind is not Upload:
        return await decoded(request, kind)
    _require_media_type(request, GZIP, "the body is not a gzip file.")
    return Upload(_pieces(request))


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise Refused("cut_off", "the upload was cut off.", "Send it again.") from None


def _require_media_type(request: Request, wanted: str, fault: str | Text) -> None:
    """Raise Denied for another media type: a form of another site cannot send this one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != wanted:
        raise Denied(415, "media_type", fault, Text.of("Send it with Content-Type: {json}.", json=wanted))


def _attachment(name: str) -> dict[str, str]:
    """Return the header with the name of a file; escaped, for a name may come from equipment or an engineer."""
    return {"content-disposition": f'attachment; filename="{quote(name)}"'}


def _request_id(request: Request, caller: WebCaller) -> str:
    """Return the id of a request: the key of its header, for this user and path, else a new one."""
    key = request.headers.get(KEY_HEADER, "")
    return f"{caller.user} {request.scope['path']} {key}" if key else str(uuid.uuid4())


def _route(operation: ApiOperation, execute: Endpoint) -> Route:
    return Route(PREFIX + operation.path, answering_problems(execute), methods=[operation.method])


def answering_problems(execute: Endpoint) -> Endpoint:
    """Return an endpoint that answers an expected error with a Problem."""

    async def endpoint(request: Request) -> Response:
        try:
            return await execute(request)
        except EdgeError as error:
            status, problem = problem_of(error, language_for(languages_of(request)))
            if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
                logger.warning("web request failed", path=request.scope["path"], reason=error.message)
            return json_response(problem, status)

    return endpoint


def json_response(content: msgspec.Struct, status: int = 200) -> Response:
    """Return data as JSON."""
    return Response(msgspec.json.encode(content), status, media_type=_JSON)


async def decoded(request: Request, kind: type[_T]) -> _T:
    """Return the body of a request. Raises Denied for another media type, Refused for another content."""
    _require_media_type(request, _JSON, "the body is not JSON.")
    try:
        return _converted(await request.body(), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        advice = Text.of("The types are in {prefix}/openapi.json.", prefix=PREFIX)
        raise Refused(
            "invalid_payload",
            Text.of("the body is not of the type {name}: {reason}.", name=kind.__name__, reason=error),
            advice,
        ) from None


def _converted(body: bytes, kind: type[_T]) -> _T:
    """Return a body as a structure. Raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        # A time may have more digits than microseconds, such as the largest of .NET.
        data = msgspec.json.decode(body)
        if not isinstance(data, dict):
            raise
        cut = {name: to_microseconds(data[name]) for name in _INSTANTS if isinstance(data.get(name), str)}
        return msgspec.convert(data | cut, kind)


async def log_in(
    services: WebServices, request: Request, given: models.Login, *, at_panel: bool
) -> tuple[str, WebCaller]:
    """Check a login and open its session; return the key for the cookie. Raises Denied."""
    address, client = address_of(request), request.headers.get("user-agent", "")[:200]
    found = await services.users.log_in(Credentials(given.name, given.password + given.code.strip(), address))
    if isinstance(found, LoginRefusal):
        services.audit.refused(given.name, address, client, "login", found.value)
        advice = "Check them and the code; after some failures a login has to wait."
        raise Denied(401, "login_refused", "name, password or code is wrong.", advice)
    stranger = WebCaller("", Role.OBSERVER, address, languages_of(request), client=client, at_panel=at_panel)
    return open_session(services, stranger, Signer(given.name, found, "password"))


async def log_in_at_panel(
    services: WebServices, request: Request, given: Signature, *, at_panel: bool
) -> tuple[str, WebCaller]:
    """Check a PIN or a badge and open its session; return the key for the cookie. Raises Denied."""
    client = request.headers.get("user-agent", "")[:200]
    stranger = WebCaller(
        "", Role.OBSERVER, address_of(request), languages_of(request), client=client, at_panel=at_panel
    )
    return open_session(services, stranger, await services.identify(stranger, given))


def open_session(services: WebServices, stranger: WebCaller, person: Signer) -> tuple[str, WebCaller]:
    """Open the session of a person; return the key for the cookie, and the caller."""
    services.audit.logged_in(person.user, person.role, stranger.address, stranger.client, person.way)
    idle_s = services.panels.idle_s if stranger.at_panel else None
    key = services.sessions.open(person.user, person.role, stranger.address, stranger.client, idle_s)
    return key, replace(stranger, user=person.user, role=person.role)


def set_cookie(response: Response, name: str, key: str, *, is_tls: bool) -> None:
    """Set the cookie of a session; an empty key removes it."""
    response.set_cookie(
        name, key, max_age=None if key else 0, path="/", secure=is_tls, httponly=True, samesite="strict"
    )
