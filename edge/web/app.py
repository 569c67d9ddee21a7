"""Builds the application of the station page: routes, callers and the guard around them."""

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from edge.web.api import Api, json_response
from edge.web.caller import Callers
from edge.web.guard import Guard
from edge.web.models import Problem
from edge.web.openapi import PREFIX
from edge.web.pages import Pages
from edge.web.services import WebServices
from edge.web.shared_results import SharedResults

_NOT_FOUND = 404


def build_app(services: WebServices) -> ASGIApp:
    """Return the application of a gateway."""
    callers = Callers(services.users, services.sessions, is_kiosk=services.is_kiosk, is_tls=services.is_tls)
    shared = SharedResults(lambda: services.events.changes)
    pages = Pages(services, callers, shared)

    async def missing(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.scope["path"].startswith("/api/"):
            problem = Problem(
                kind="not_found", reason="there is no such address.", advice=f"See {PREFIX}/openapi.json."
            )
            response = json_response(problem, _NOT_FOUND)
        else:
            response = await pages.missing(request)
        await response(scope, receive, send)

    routes = [*Api(services, callers, shared).routes(), *pages.routes()]
    return Guard(Router(routes=routes, redirect_slashes=False, default=missing))
