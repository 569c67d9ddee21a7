"""Reads and posts resources over HTTP, within limits of time and size."""

import asyncio
import http.client
import urllib.error
import urllib.request
from typing import Any, Final

import msgspec

from edge.features.flows.attempt import LARGEST_OUTPUT, OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import HttpResource, PostResource
from edge.foundation.text import Text

_TIMEOUT_S: Final = 10.0


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that reads http and https only: no files, no FTP, no proxy of the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
    ):
        opener.add_handler(handler())
    return opener


async def get_resource(query: HttpResource, _action_id: str) -> Any:
    """Return the JSON of a resource, or its text; raises NodeError."""
    try:
        return await asyncio.to_thread(_exchange, urllib.request.Request(query.url))  # noqa: S310 - the opener has no file:
    except urllib.error.HTTPError as error:
        raise NodeError(Text.of("{url}: status {code}", url=query.url, code=error.code)) from None
    except (OSError, http.client.HTTPException) as error:
        raise NodeError(Text.of("{url}: {reason}", url=query.url, reason=_reason(error))) from None


async def post_resource(action: PostResource, action_id: str) -> Any:
    """Send a value as JSON and return the answer.

    The header `Idempotency-Key` is the id of the node task. Raises NodeError when the server refused it or was not
    reached, OutcomeUnknownError when the connection was lost before the answer.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": action_id}
    body = msgspec.json.encode(action.value)
    request = urllib.request.Request(action.url, body, headers, method="POST")  # noqa: S310 - the opener has no file:
    try:
        return await asyncio.to_thread(_exchange, request)
    except urllib.error.HTTPError as error:
        raise NodeError(Text.of("{url}: status {code}", url=action.url, code=error.code)) from None
    except ConnectionRefusedError as error:
        raise NodeError(Text.of("{url}: {reason}", url=action.url, reason=_reason(error))) from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.URLError) and isinstance(error.reason, ConnectionRefusedError):
            raise NodeError(Text.of("{url}: {reason}", url=action.url, reason=_reason(error))) from None
        raise OutcomeUnknownError(f"{action.url}: {_reason(error)}") from None


def _exchange(request: urllib.request.Request) -> Any:
    with _opener().open(request, timeout=_TIMEOUT_S) as response:
        content: bytes = response.read(LARGEST_OUTPUT + 1)
    if len(content) > LARGEST_OUTPUT:
        raise NodeError(Text.of("{url}: more than {most} bytes", url=request.full_url, most=LARGEST_OUTPUT))
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return content.decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error) or type(error).__name__
