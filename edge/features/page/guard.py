"""The outermost layer of the application: bounds of a request, decoding of its path, and headers for every answer."""

import asyncio
from typing import Final
from urllib.parse import unquote

import msgspec
import structlog
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.features.page.models import Problem

logger = structlog.get_logger(__name__)

_API: Final = "/api/v1/"
_KINDS: Final = {400: "malformed", 500: "internal"}
MOST_BODY_BYTES: Final = 64 * 1024
LARGE_BODIES: Final = {
    "/api/v1/recipes/check": 8,
    "/api/v1/recipes/simulate": 8,
    "/api/v1/recipe-drafts": 48,
    "/api/v1/recipe-tests": 8,
}
"""How much more than others a body may have by the beginning of its path: recipes, and files of 2 MiB within JSON."""
MOST_HEAD_BYTES: Final = 16 * 1024
MOST_TARGET_BYTES: Final = 8 * 1024
"""The method, the path and the query of a request line; RFC 9112, section 3, wants 8,000 bytes at least."""
REQUEST_S: Final = 20.0
FILES: Final = "/api/v1/backups/"
"""Paths below it take and return files of backups."""
MOST_FILE_BYTES: Final = 256 << 20
FILE_S: Final = 900.0
STREAMS: Final = frozenset({"/api/v1/events"})
"""Paths whose answers last."""

_SLASH: Final = "\ue000"
"""Stands for a slash within a part of a path. No id contains it, as it cannot be printed."""

_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        # Charts of files that are checked are pictures made by the script of the page: blob.
        b"; ".join(
            (
                b"default-src 'self'",
                b"img-src 'self' blob:",
                b"base-uri 'none'",
                b"form-action 'self'",
                b"frame-ancestors 'none'",
                b"object-src 'none'",
            )
        ),
    ),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)


class BodyTooLarge(Exception):
    """The body of a request exceeds its limit."""


class Guard:
    """Bounds requests before they reach the application, and protects the answers."""

    def __init__(self, app: ASGIApp, request_s: float = REQUEST_S, most_body_bytes: int = MOST_BODY_BYTES) -> None:
        self._app = app
        self._request_s = request_s
        self._most_body_bytes = most_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        scope = {**scope, "path": decode_path(scope["raw_path"])}
        answer = _Answer(send)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD_BYTES:
            await _refuse(scope, receive, answer, 431, f"the head has more than {MOST_HEAD_BYTES} bytes")
            return
        if len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"]) > MOST_TARGET_BYTES:
            await _refuse(scope, receive, answer, 414, f"the request line has more than {MOST_TARGET_BYTES} bytes")
            return
        if _names_both_lengths(scope):
            text = "Content-Length together with Transfer-Encoding is refused (RFC 9112, section 6.1)"
            await _refuse(scope, receive, answer, 400, text)
            return
        is_file = scope["path"].startswith(FILES)
        limit = None if scope["path"] in STREAMS else FILE_S if is_file else self._request_s
        factor = next((much for path, much in LARGE_BODIES.items() if scope["path"].startswith(path)), 1)
        most = MOST_FILE_BYTES if is_file else self._most_body_bytes * factor
        if _declared_length(scope) > most:
            await _refuse(scope, receive, answer, 413, f"the body has more than {most} bytes")
            return
        try:
            async with asyncio.timeout(limit):
                await self._app(scope, _bounded(receive, most), answer.send)
        except BodyTooLarge:
            await _refuse(scope, receive, answer, 413, f"the body has more than {most} bytes")
        except TimeoutError:
            await _refuse(scope, receive, answer, 408, "the request took too long")
        except Exception:  # a defect in one request must not end the connection without an answer
            logger.exception("web request failed", path=scope["path"])
            await _refuse(scope, receive, answer, 500, "the request met a defect: look at the log")


def decode_path(raw: bytes) -> str:
    """Return the path of a request; a slash that was encoded stays within its part."""
    text = raw.decode("ascii", errors="replace")
    return unquote(text.replace("%2F", "%EE%80%80").replace("%2f", "%EE%80%80"), errors="replace")


def path_part(text: str) -> str:
    """Return a part of a decoded path as its sender meant it."""
    return text.replace(_SLASH, "/")


class _Answer:
    """Sends an answer with the headers of every answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            own = message.get("headers", [])
            names = {name for name, _ in own}
            message = {**message, "headers": [*own, *(row for row in _HEADERS if row[0] not in names)]}
        await self._send(message)


def _bounded(receive: Receive, most_bytes: int) -> Receive:
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most_bytes:
            raise BodyTooLarge
        return message

    return bounded


def _declared_length(scope: Scope) -> int:
    """Return the length that the head names; 0 without one. The server has checked that it is a number."""
    return max((int(value) for name, value in scope["headers"] if name == b"content-length"), default=0)


def _names_both_lengths(scope: Scope) -> bool:
    """Return whether a proxy and this server could take different lengths of the body: a smuggled request follows."""
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}


async def _refuse(scope: Scope, receive: Receive, answer: _Answer, status: int, text: str) -> None:
    if answer.has_begun:
        return
    headers = {"connection": "close"}
    response: Response = PlainTextResponse(f"{text}\n", status, headers=headers)
    if scope["path"].startswith(_API):
        content = msgspec.json.encode(Problem(kind=_KINDS.get(status, "out_of_bounds"), reason=text))
        response = Response(content, status, headers=headers, media_type="application/json")
    await response(scope, receive, answer.send)
