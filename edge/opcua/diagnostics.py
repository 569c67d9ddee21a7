"""Counts the use of the server, and returns it in the structures of OPC 10000-5, 12.8 to 12.12."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from asyncua import ua
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.ua.ua_binary import Primitives, nodeid_to_binary

from edge.opcua.binary import INT32, STRING, array

if TYPE_CHECKING:
    from edge.opcua.server_session import ServerSession

_SECURITY_ENCODING = ua.NodeId(ua.ObjectIds.SessionSecurityDiagnosticsDataType_Encoding_DefaultBinary)

_COUNTED = tuple(
    each.name.removesuffix("Count")
    for each in fields(ua.SessionDiagnosticsDataType)
    if each.name.endswith("Count") and not each.name.startswith(("Current", "Total", "Unauthorized"))
)
SERVICE_NAMES: Mapping[ua.NodeId, str] = MappingProxyType(
    {ua.NodeId(getattr(ua.ObjectIds, f"{name}Request_Encoding_DefaultBinary")): name for name in _COUNTED}
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


@dataclass(slots=True)
class ServerCounts:
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


@dataclass(slots=True)
class SessionRecord:
    """What a client said of itself when it created a session, and the requests it has sent since."""

    asked: ua.CreateSessionParameters = field(default_factory=ua.CreateSessionParameters)
    connected_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_contact: datetime = field(default_factory=lambda: datetime.now(UTC))
    total: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    unauthorized: int = 0

    def count(self, service: ua.NodeId, code: int = 0) -> None:
        """Count a request; `code` is the fault it was answered with."""
        name = SERVICE_NAMES.get(service, "")
        self.last_contact = datetime.now(UTC)
        self.total[name] += 1
        self.errors[name] += code != 0
        self.unauthorized += code in _SECURITY_FAULTS


def summary(
    counts: ServerCounts, sessions: int, subscriptions: Iterable[InternalSubscription]
) -> ua.ServerDiagnosticsSummaryDataType:
    """Return the summary of the server."""
    intervals = [each.data.RevisedPublishingInterval for each in subscriptions]
    return ua.ServerDiagnosticsSummaryDataType(
        ServerViewCount=0,
        CurrentSessionCount=sessions,
        CumulatedSessionCount=counts.sessions,
        SecurityRejectedSessionCount=counts.security_rejected_sessions,
        RejectedSessionCount=counts.rejected_sessions,
        SessionTimeoutCount=counts.timeouts,
        SessionAbortCount=counts.aborts,
        CurrentSubscriptionCount=len(intervals),
        CumulatedSubscriptionCount=counts.subscriptions,
        PublishingIntervalCount=len(set(intervals)),
        SecurityRejectedRequestsCount=counts.security_rejected_requests,
        RejectedRequestsCount=counts.rejected_requests,
    )


def session_diagnostics(session: "ServerSession") -> ua.SessionDiagnosticsDataType:
    """Return what one session does."""
    record = session.record
    owned = session.owned_subscriptions()
    found = ua.SessionDiagnosticsDataType(
        SessionId=session.session_id,
        SessionName=record.asked.SessionName,
        ClientDescription=record.asked.ClientDescription,
        ServerUri=record.asked.ServerUri,
        EndpointUrl=record.asked.EndpointUrl,
        ActualSessionTimeout=(session.session_timeout or 0.0) * 1000,
        MaxResponseMessageSize=record.asked.MaxResponseMessageSize,
        ClientConnectionTime=record.connected_at,
        ClientLastContactTime=record.last_contact,
        CurrentSubscriptionsCount=len(owned),
        CurrentMonitoredItemsCount=sum(len(each.monitored_item_srv.handles()[0]) for each in owned),
        CurrentPublishRequestsInQueue=0 if session.connection is None else session.connection.waiting_publish_requests,
        TotalRequestCount=ua.ServiceCounterDataType(sum(record.total.values()), sum(record.errors.values())),
        UnauthorizedRequestCount=record.unauthorized,
    )
    for name in _COUNTED:
        setattr(found, f"{name}Count", ua.ServiceCounterDataType(record.total[name], record.errors[name]))
    return found


def session_security(session: "ServerSession") -> ua.ExtensionObject:
    """Return how one session is secured, encoded by us: asyncua takes the field Encoding for a mask of fields."""
    caller, connection = session.caller, session.connection
    policy: Any = None if connection is None else connection.channel.security_policy
    name = caller.name if caller else ""
    body = (
        nodeid_to_binary(session.session_id),
        STRING.encode(name),
        array(STRING).encode([name] if name else []),
        STRING.encode("UserName" if name else "Anonymous"),
        STRING.encode("UA Binary"),
        STRING.encode("uatcp-uasc-uabinary"),
        INT32.encode(policy.Mode if policy else ua.MessageSecurityMode.Invalid),
        STRING.encode(policy.URI if policy else ""),
        Primitives.Bytes.pack(session.certificate),
    )
    return ua.ExtensionObject(TypeId=_SECURITY_ENCODING, Body=b"".join(body))


def subscription_diagnostics(subscription: InternalSubscription) -> ua.SubscriptionDiagnosticsDataType:
    """Return what one subscription does: what the server counts; the other counters stay 0."""
    data, items = subscription.data, subscription.monitored_item_srv
    return ua.SubscriptionDiagnosticsDataType(
        SessionId=subscription.session_id,
        SubscriptionId=data.SubscriptionId,
        PublishingInterval=data.RevisedPublishingInterval,
        MaxKeepAliveCount=data.RevisedMaxKeepAliveCount,
        MaxLifetimeCount=data.RevisedLifetimeCount,
        MaxNotificationsPerPublish=items.max_notifications,
        PublishingEnabled=subscription._publishing_enabled,  # noqa: SLF001
        CurrentKeepAliveCount=subscription._keep_alive_count,  # noqa: SLF001
        CurrentLifetimeCount=subscription._publish_cycles_count,  # noqa: SLF001
        UnacknowledgedMessageCount=len(subscription._not_acknowledged_results),  # noqa: SLF001
        MonitoredItemCount=len(items.handles()[0]),
        DisabledMonitoredItemCount=items.disabled,
        NextSequenceNumber=subscription._notification_seq,  # noqa: SLF001
    )
