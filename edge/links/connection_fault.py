"""Finds the kind of reason why a peer cannot be reached, from the error of the transport."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator, Mapping

from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.foundation.text import Text
from edge.model.equipment_connection import ConnectionFault


class ConnectionFailed(Unavailable):
    """A peer that cannot be reached, or is lost, for a reason of a kind that is known."""

    def __init__(self, fault: ConnectionFault, message: str | Text, advice: str | Text = "") -> None:
        super().__init__(message, advice)
        self.fault = fault


_OF_ERRNO: Mapping[int, ConnectionFault] = {
    errno.ECONNREFUSED: ConnectionFault.REFUSED,
    errno.ETIMEDOUT: ConnectionFault.SILENT,
    errno.ECONNRESET: ConnectionFault.CLOSED,
    errno.ECONNABORTED: ConnectionFault.CLOSED,
    errno.EPIPE: ConnectionFault.CLOSED,
    errno.EHOSTUNREACH: ConnectionFault.UNREACHABLE,
    errno.EHOSTDOWN: ConnectionFault.UNREACHABLE,
    errno.ENETUNREACH: ConnectionFault.UNREACHABLE,
    errno.ENETDOWN: ConnectionFault.UNREACHABLE,
    errno.EPROTO: ConnectionFault.PROTOCOL,
    errno.ENOENT: ConnectionFault.UNREACHABLE,
    errno.ENODEV: ConnectionFault.UNREACHABLE,
    errno.ENXIO: ConnectionFault.UNREACHABLE,
}
_OF_REFUSAL: Mapping[str, ConnectionFault] = {
    "device": ConnectionFault.DECLINED,
    "too_large": ConnectionFault.SETTINGS,
    "unreadable": ConnectionFault.PROTOCOL,
    "unknown_node": ConnectionFault.WRONG_DEVICE,
    "method_failed": ConnectionFault.DECLINED,
}
_ERRNO_IN_TEXT = re.compile(r"\[Errno (\d+)\]")
_CERTIFICATE_ALERT = re.compile("CERTIFICATE|UNKNOWN_CA")


def fault_of(error: BaseException) -> ConnectionFault:
    """Return the kind of the first error in a chain of causes that has one."""
    return next((fault for cause in _chain(error) if (fault := _fault(cause)) is not None), ConnectionFault.OTHER)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _fault(error: BaseException) -> ConnectionFault | None:
    match error:
        case ConnectionFailed(fault=fault):
            return fault
        case Refused(kind=kind):
            return _OF_REFUSAL.get(kind)
        case SettingsError():
            return ConnectionFault.SETTINGS
        case ssl.SSLCertVerificationError():
            return ConnectionFault.CERTIFICATE
        case ssl.SSLError():
            is_certificate = _CERTIFICATE_ALERT.search(error.reason or "") is not None
            return ConnectionFault.CERTIFICATE if is_certificate else ConnectionFault.PROTOCOL
        case socket.gaierror():
            return ConnectionFault.NO_HOST
        case OSError(errno=int(number)):
            return _OF_ERRNO.get(number)
        case TimeoutError():
            return ConnectionFault.SILENT
        case ConnectionError():
            return ConnectionFault.CLOSED
        case OSError():
            # A host with several addresses: asyncio joins the errors of all of them in one text.
            numbers = map(int, _ERRNO_IN_TEXT.findall(str(error)))
            return next((_OF_ERRNO[number] for number in numbers if number in _OF_ERRNO), None)
        case _:
            return None
