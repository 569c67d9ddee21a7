"""Checks and limits requests before any work is done."""

import math
from collections.abc import Sized

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.crypto.uacrypto import x509_from_der

from edge.opcua.application_certificate import application_uris
from edge.opcua.limits import ServerLimits

_NONCE_BYTES = 32


def check_application(certificate: bytes, params: ua.CreateSessionParameters) -> None:
    """Check that the application that opened the channel creates the session (OPC 10000-4, 5.6.2)."""
    own = x509_from_der(certificate)
    try:
        given = x509_from_der(params.ClientCertificate)
    except (ValueError, IndexError):
        given = None
    if given != own:
        raise ServiceError(ua.StatusCodes.BadSecurityChecksFailed)
    if params.ClientDescription.ApplicationUri not in application_uris(own):
        raise ServiceError(ua.StatusCodes.BadCertificateUriInvalid)
    if len(params.ClientNonce or b"") < _NONCE_BYTES:
        raise ServiceError(ua.StatusCodes.BadNonceInvalid)


def check_count(limit: int, operations: Sized | None) -> None:
    """Check the number of operations of a request. Raises ServiceError for none, or more than the limit."""
    if not operations:
        raise ServiceError(ua.StatusCodes.BadNothingToDo)
    if len(operations) > limit:
        raise ServiceError(ua.StatusCodes.BadTooManyOperations)


def check_subscriptions(ids: Sized, limit: int) -> None:
    """Check the number of subscriptions in a request. Raises ServiceError above the limit."""
    if len(ids) > limit:
        raise ServiceError(ua.StatusCodes.BadTooManyOperations)


def clamp(asked: float, least: float, most: float) -> float:
    """Return the nearest number within the bounds."""
    # A client may send NaN, for which no comparison is true.
    return least if math.isnan(asked) else min(max(asked, least), most)


def clamp_monitoring(asked: ua.MonitoringParameters, limits: ServerLimits) -> None:
    """Bound the queue of a monitored item of values."""
    if not isinstance(asked.Filter, ua.EventFilter):
        asked.QueueSize = min(max(asked.QueueSize, 1), limits.queued_values)


def unknown_subscription() -> ua.StatusCode:
    """Return the status for a subscription that is not one of the session."""
    return ua.StatusCode(ua.StatusCodes.BadSubscriptionIdInvalid)
