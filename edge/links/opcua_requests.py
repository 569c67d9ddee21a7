"""Reports the requests of an OPC UA session to its listener; translates errors of network and asyncua into our own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from asyncua import ua

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.links.connection_fault import ConnectionFailed, fault_of
from edge.model.equipment_connection import ConnectionFault
from edge.model.equipment_traffic import EquipmentRequest
from edge.opcua.client_transport import TOO_LARGE, MessageTooLargeError

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


_CERTIFICATE = ("BadCertificate", "BadSecurity", "BadNonce")
_DECLINED = ("BadIdentity", "BadUser", "BadTooMany", "BadMaxConnections", "BadTcpNotEnough", "BadTcpServerTooBusy")
_PROTOCOL = ("BadTcp", "BadProtocol", "BadCommunication", "BadDecoding", "BadServiceUnsupported", "BadUnknownResponse")
_SILENT = ("BadTimeout", "BadRequestTimeout", "BadNoCommunication")
_CLOSED = ("BadConnection", "BadServerHalted", "BadShutdown", "BadSecureChannel", "BadSession", "BadServerNotConnected")
_FAULTS = (
    (_CERTIFICATE, ConnectionFault.CERTIFICATE),
    (_DECLINED, ConnectionFault.DECLINED),
    (_PROTOCOL, ConnectionFault.PROTOCOL),
    (_SILENT, ConnectionFault.SILENT),
    (_CLOSED, ConnectionFault.CLOSED),
)
"""The kind of a status code, by the beginning of its name; the first that fits."""


@contextmanager
def translate_errors(failure: Text, advice: str = "Is it running?") -> Iterator[None]:
    """Raise Unavailable, as "{failure}: {reason}", when the network or the server fails inside the block.

    Raise Refused(`too_large`) for an answer beyond the size limit: the connection is open, other requests work.
    """
    try:
        yield
    except asyncio.CancelledError:
        # asyncua may raise a CancelledError that holds a result (wait_for2): a TaskGroup treats it as an error.
        raise asyncio.CancelledError from None
    except MessageTooLargeError as error:
        raise Refused("too_large", str(error)) from error
    except TOO_LARGE as error:
        declined = Text.of(
            "the server declines an answer of more than max_message_bytes: {name}", name=type(error).__name__
        )
        raise Refused("too_large", declined) from error
    except (OSError, ua.UaError) as error:
        is_late = isinstance(error, TimeoutError)
        reason = Text.of("no answer in time") if is_late else str(error) or type(error).__name__
        raise ConnectionFailed(
            _fault_of(error), Text.of("{failure}: {reason}", failure=failure, reason=reason), advice
        ) from error


def _fault_of(error: Exception) -> ConnectionFault:
    name = type(error).__name__
    return next((fault for starts, fault in _FAULTS if name.startswith(starts)), fault_of(error))


def serving(url: str) -> AbstractContextManager[None]:
    """Return a context in which each error means that a server does not serve us."""
    return translate_errors(Text.of("the OPC UA server {url} does not serve us", url=url))
