"""Counts the sessions, requests and faults of the server."""

import secrets
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from asyncua import ua
from msgspec import Struct, field

COUNTED = tuple(
    name.removesuffix("Count")
    for name in ua.SessionDiagnosticsDataType.__annotations__
    if name.endswith("Count") and not name.startswith(("Current", "Total", "Unauthorized"))
)
SERVICE_NAMES: Mapping[ua.NodeId, str] = MappingProxyType(
    {ua.NodeId(getattr(ua.ObjectIds, f"{name}Request_Encoding_DefaultBinary")): name for name in COUNTED}
)
"""The services that are counted for each session, by the id of their request."""

_SECURITY_FAULTS = frozenset(
    {
        ua.StatusCodes.BadUserAccessDenied,
        ua.StatusCodes.BadIdentityTokenInvalid,
        ua.StatusCodes.BadIdentityTokenRejected,
        ua.StatusCodes.BadSecurityChecksFailed,
        ua.StatusCodes.BadSecurityPolicyRejected,
        ua.StatusCodes.BadApplicationSignatureInvalid,
        ua.StatusCodes.BadCertificateUriInvalid,
        ua.StatusCodes.BadSessionIdInvalid,
        ua.StatusCodes.BadSecureChannelIdInvalid,
        ua.StatusCodes.BadSessionNotActivated,
    }
)


class ServerCounts(Struct):
    """What has happened since the start of the server."""

    sessions: int = 0
    rejected_sessions: int = 0
    security_rejected_sessions: int = 0
    timeouts: int = 0
    aborts: int = 0
    subscriptions: int = 0
    rejected_requests: int = 0
    security_rejected_requests: int = 0

    def count_fault(self, code: int, *, is_session: bool) -> None:
        """Count a request that was answered with a fault; `is_session` when it was to create a session."""
        is_security = code in _SECURITY_FAULTS
        self.rejected_requests += 1
        self.security_rejected_requests += is_security
        self.rejected_sessions += is_session
        self.security_rejected_sessions += is_session and is_security


class SubscriptionCounts(Struct):
    """What has happened to a subscription since it was created."""

    priority: int = 0
    modified: int = 0
    enabled: int = 0
    disabled: int = 0
    republish_requests: int = 0
    republished: int = 0
    transfer_requests: int = 0
    transferred: int = 0
    publish_requests: int = 0
    late: int = 0
    values: int = 0
    events: int = 0
    discarded_messages: int = 0
    value_overflows: int = 0
    event_overflows: int = 0

    def count_mode(self, *, enabled: bool) -> None:
        """Count a request to enable or disable publishing."""
        self.enabled += enabled
        self.disabled += not enabled


class SessionRecord(Struct):
    """What a client said of itself when it created a session, and the requests it has sent since."""

    asked: ua.CreateSessionParameters = field(default_factory=ua.CreateSessionParameters)
    connected_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_contact: datetime = field(default_factory=lambda: datetime.now(UTC))
    total: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    unauthorized: int = 0
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    """The id of the session in the list of sessions: it does not show the token of the session."""
    secret_digest: bytes = b""
    """The digest of user name and password of the last activation."""

    def count(self, service: ua.NodeId, code: int = 0) -> None:
        """Count a request; `code` is the fault it was answered with."""
        name = SERVICE_NAMES.get(service, "")
        self.last_contact = datetime.now(UTC)
        self.total[name] += 1
        self.errors[name] += code != 0
        self.unauthorized += code in _SECURITY_FAULTS
