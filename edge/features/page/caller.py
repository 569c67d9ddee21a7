"""Finds out who sends a request: a login in a browser, a program with a token, or the kiosk at the station."""

import base64
import binascii
import math
from typing import Final

from starlette.requests import Request

from edge.access.localization import parse_languages
from edge.access.login import Credentials, LoginRefusal, Users
from edge.access.web_audit import WebAudit, WebCaller
from edge.app.page_part import Signature, Signer
from edge.features.page.panels import Panels, asks_this_host
from edge.features.page.problems import Denied
from edge.features.page.sessions import WebSessions
from edge.foundation.rate_limit import RateLimit
from edge.foundation.text import Text
from edge.model.user import Role

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
LIVE_HEADER: Final = "x-live"
LIVE: Final = "live"
"""The header and the parameter by which the page marks what it reads by itself."""

PIN: Final = "PIN"
BADGE: Final = "badge"
_KIOSK_RATE: Final = 300
_KIOSK_S: Final = 5.0


class Callers:
    """Authenticates requests by the settings, the sessions and the users of the gateway."""

    def __init__(self, users: Users, sessions: WebSessions, panels: Panels, *, is_kiosk: bool, is_tls: bool) -> None:
        self._users = users
        self._panels = panels
        self._sessions = sessions
        self._is_kiosk = is_kiosk
        self._is_tls = is_tls
        self._kiosk_rate = RateLimit(_KIOSK_RATE, _KIOSK_S)

    @property
    def cookie(self) -> str:
        """The name of the cookie; on TLS browsers accept it from this host only."""
        return "__Host-edge-session" if self._is_tls else "edge-session"

    def at_panel(self, request: Request) -> bool:
        """Return whether a request comes from a panel of the station."""
        return self._panels.has(address_of(request), request.headers)

    async def find(self, request: Request) -> WebCaller | None:
        """Return the caller of a request; None for a stranger.

        Raises Denied for a wrong token, a change from another site, and too many requests.
        """
        if "authorization" in request.headers:
            return await self._program(request)
        if request.method not in SAFE_METHODS:
            refuse_other_site(request)
        key = request.cookies.get(self.cookie, "")
        session = self._sessions.find(key, is_activity=not is_live(request)) if key else None
        if session is not None:
            if not session.rate.try_acquire():
                raise Denied(429, "too_many_requests", "this login sends too many requests.", "Wait a few seconds.")
            address, languages, at_panel = address_of(request), languages_of(request), self.at_panel(request)
            return WebCaller(session.user, session.role, address, languages, session.id, session.client, at_panel)
        if self._is_kiosk and asks_this_host(address_of(request), request.headers):
            if not self._kiosk_rate.try_acquire():
                raise Denied(429, "too_many_requests", "the kiosk sends too many requests.", "Wait a few seconds.")
            at_panel = self.at_panel(request)
            return WebCaller("", Role.OBSERVER, address_of(request), languages_of(request), at_panel=at_panel)
        return None

    async def _program(self, request: Request) -> WebCaller:
        """Return the program with a token: `Authorization: Basic` of a user name and the token."""
        name, secret = _basic(request.headers["authorization"])
        found = await self._users.log_in(Credentials(name, secret, address_of(request)))
        if isinstance(found, LoginRefusal):
            advice = "Send a user name and its token, as curl does with -u NAME:TOKEN: edge users token --help"
            raise Denied(401, "login_refused", "user name or token is wrong, or must wait.", advice, found.value)
        return WebCaller(name, found, address_of(request), languages_of(request), client=_client(request))


async def identify(users: Users, audit: WebAudit, caller: WebCaller, given: Signature) -> Signer:
    """Return who signs. Raises Denied; a wrong signature is in the audit trail, and has to wait after some failures."""
    way = BADGE if given.badge else PIN
    if not caller.at_panel:
        advice = "Log in with the password; the addresses of panels are in [web] panel_addresses."
        raise Denied(403, "not_at_panel", "PIN and badge are accepted at a panel of the station only.", advice)
    if given.badge:
        found = await users.log_in_with_badge(given.badge, caller.address)
    else:
        found = await users.log_in_with_pin(given.name, given.pin, caller.address)
    if not isinstance(found, LoginRefusal):
        return Signer(found.name, found.role, way)
    audit.refused("" if given.badge else given.name, caller.address, caller.client, f"login by {way}", found.value)
    wait_s = math.ceil(users.panel_wait_s("" if given.badge else given.name, caller.address))
    if wait_s:
        locked = Text.of("too many failures: locked for {seconds} s.", seconds=wait_s)
        raise Denied(429, "login_locked", locked, "Wait, or log in with the password.")
    kind = "login_refused"
    match found:
        case LoginRefusal.CODE_NEEDED:
            reason, advice = Text.of("this user needs the second factor."), "Log in with password and code."
        case LoginRefusal.UNKNOWN_BADGE:
            kind = "unknown_badge"
            reason, advice = Text.of("no user has this badge."), "Use another badge, or your PIN."
        case _:
            reason, advice = Text.of("name or PIN is wrong."), "After some failures a PIN has to wait."
    raise Denied(401, kind, reason, advice)


def is_live(request: Request) -> bool:
    """Return whether the page reads changes by itself: no activity of a person."""
    return LIVE in request.query_params or LIVE_HEADER in request.headers


def refuse_other_site(request: Request) -> None:
    """Refuse a change that a page of another site has sent. Raises Denied."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    own = f"{request.scope['scheme']}://{host}"
    is_ours = origin == own if origin is not None else request.headers.get("sec-fetch-site") == "same-origin"
    if not host or not is_ours:
        advice = "Use the page of the gateway itself; programs send a token and need no Origin."
        raise Denied(403, "other_site", "the request comes from another site.", advice)


def address_of(request: Request) -> str:
    """Return the network address of the client."""
    return request.client.host if request.client else ""


def languages_of(request: Request) -> tuple[str, ...]:
    """Return the languages of the client, the preferred one first."""
    return parse_languages(request.headers.get("accept-language", "")[:200])


def _client(request: Request) -> str:
    return request.headers.get("user-agent", "")[:200]


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, ValueError):
        text = ""
    name, _, secret = text.partition(":")
    return name, secret
