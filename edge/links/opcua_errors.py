"""Translates the errors of the network and of asyncua into our own."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from asyncua import ua

from edge.foundation.errors import Refused
from edge.links.connection_fault import ConnectionFailed, fault_of
from edge.model.equipment_connection import ConnectionFault
from edge.opcua.client_transport import TOO_LARGE, MessageTooLargeError

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
def translate_errors(failure: str, advice: str = "Is it running?") -> Iterator[None]:
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
        reason = f"the server declines an answer of more than max_message_bytes: {type(error).__name__}"
        raise Refused("too_large", reason) from error
    except (OSError, ua.UaError) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise ConnectionFailed(_fault_of(error), f"{failure}: {reason}", advice) from error


def _fault_of(error: Exception) -> ConnectionFault:
    name = type(error).__name__
    return next((fault for starts, fault in _FAULTS if name.startswith(starts)), fault_of(error))


def serving(url: str) -> AbstractContextManager[None]:
    """Return a context in which each error means that a server does not serve us."""
    return translate_errors(f"the OPC UA server {url} does not serve us")
