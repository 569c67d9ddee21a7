"""Reports the requests of an OPC UA session to its listener."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from edge.foundation.errors import Refused, Unavailable
from edge.model.equipment_traffic import EquipmentRequest

RequestListener = Callable[[EquipmentRequest], None]
"""Receives each request to a server with its result or error, also the start of a watch."""


class _ReportingSession(Protocol):
    """A session that reports its requests."""

    on_request: RequestListener


_LARGE = 1024

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")
_Session = TypeVar("_Session", bound=_ReportingSession)


def ignore_request(_asked: EquipmentRequest) -> None:
    """Ignore a request."""


def reported(
    question: Callable[Concatenate[_Session, _Arguments], Awaitable[_Found]],
) -> Callable[Concatenate[_Session, _Arguments], Coroutine[Any, Any, _Found]]:
    """Report every call of a request on a session to its listener."""

    @wraps(question)
    async def asking(session: _Session, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Found:
        asked = partial(EquipmentRequest, question.__name__, (*arguments, *named.values()))
        with report_failure(session.on_request, asked):
            found = await question(session, *arguments, **named)
        session.on_request(asked(_recorded(found)))
        return found

    return asking


def _recorded(found: Any) -> Any:
    """Return an answer as a recorder gets it: the parts of a file by their size only."""
    if not isinstance(found, list):
        return found
    large = [isinstance(value, bytes) and len(value) > _LARGE for value in found]
    if not any(large):
        return found
    return [f"{len(value)} bytes" if is_large else value for value, is_large in zip(found, large, strict=True)]


@contextmanager
def report_failure(on_request: RequestListener, asked: Callable[..., EquipmentRequest]) -> Iterator[None]:
    """Report a request that fails in the block."""
    try:
        yield
    except Refused as refusal:
        on_request(asked(error=refusal.message, kind=refusal.kind))
        raise
    except Unavailable as error:
        on_request(asked(error=error.message))
        raise
