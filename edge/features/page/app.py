"""Builds the application of the station page: routes, callers and the guard around them."""

import importlib

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from edge.features.page.api import Api, json_response
from edge.features.page.caller import Callers
from edge.features.page.guard import Guard
from edge.features.page.models import Problem
from edge.features.page.openapi import PREFIX
from edge.features.page.pages import Pages
from edge.features.page.services import WebServices
from edge.features.page.shared_results import SharedResults

# Starlette imports it at the first stream of changes: the gateway would stand still for a tenth of a second.
importlib.import_module("anyio._backends._asyncio")

_NOT_FOUND = 404
_PAGES_SHARE = 0.1
_PICTURES_SHARE = 0.05
_PAGE_INTERVAL_S = 0.01
_PICTURE_INTERVAL_S = 0.02
"""For each open page."""


def build_app(services: WebServices) -> ASGIApp:
    """Return the application of a gateway."""
    callers = Callers(services.users, services.sessions, is_kiosk=services.is_kiosk, is_tls=services.is_tls)
    # Apart, so that no page waits for the rest after a picture.
    events = services.events
    shared_pages = SharedResults(lambda: events.changes, _PAGES_SHARE, lambda: _PAGE_INTERVAL_S * events.subscribers)
    shared_pictures = SharedResults(
        lambda: events.changes, _PICTURES_SHARE, lambda: _PICTURE_INTERVAL_S * events.subscribers
    )
    pages = Pages(services, callers, shared_pages)

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

    # Routes are tried in this order: pages are asked for most.
    routes = [*pages.routes(), *Api(services, callers, shared_pictures).routes()]
    return Guard(Router(routes=routes, redirect_slashes=False, default=missing))
