"""Returns the use of the server in the structures of OPC 10000-5, 12.8 to 12.12."""

from collections.abc import Iterable
from typing import Any

from asyncua import ua
from asyncua.ua.ua_binary import Primitives, nodeid_to_binary

from edge.opcua.binary import INT32, STRING, array
from edge.opcua.request_counts import COUNTED, ServerCounts
from edge.opcua.server_session import ServerSession
from edge.opcua.subscriptions import ClientSubscription

_SECURITY_ENCODING = ua.NodeId(ua.ObjectIds.SessionSecurityDiagnosticsDataType_Encoding_DefaultBinary)


def summary(
    counts: ServerCounts, sessions: int, subscriptions: Iterable[ClientSubscription]
) -> ua.ServerDiagnosticsSummaryDataType:
    """Return the summary of the server."""
    intervals = [subscription.interval_ms for subscription in subscriptions]
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


def session_diagnostics(session: ServerSession) -> ua.SessionDiagnosticsDataType:
    """Return the diagnostics of a session."""
    record = session.record
    owned = session.owned_subscriptions()
    found = ua.SessionDiagnosticsDataType(
        SessionId=session.session_id,
        SessionName=record.asked.SessionName,
        ClientDescription=record.asked.ClientDescription,
        ServerUri=record.asked.ServerUri,
        EndpointUrl=record.asked.EndpointUrl,
        ActualSessionTimeout=session.timeout_s * 1000,
        MaxResponseMessageSize=record.asked.MaxResponseMessageSize,
        ClientConnectionTime=record.connected_at,
        ClientLastContactTime=record.last_contact,
        CurrentSubscriptionsCount=len(owned),
        CurrentMonitoredItemsCount=sum(len(value.items) for value in owned),
        CurrentPublishRequestsInQueue=len(session.publish_requests),
        TotalRequestCount=ua.ServiceCounterDataType(sum(record.total.values()), sum(record.errors.values())),
        UnauthorizedRequestCount=record.unauthorized,
    )
    for name in COUNTED:
        setattr(found, f"{name}Count", ua.ServiceCounterDataType(record.total[name], record.errors[name]))
    return found


def session_security(session: ServerSession) -> ua.ExtensionObject:
    """Return the security diagnostics of a session, encoded here: asyncua would read Encoding as a field mask."""
    caller, connection = session.caller, session.connection
    policy: Any = connection.channel.security_policy
    name = caller.name if caller else ""
    body = (
        nodeid_to_binary(session.session_id),
        STRING.encode(name),
        array(STRING).encode([name] if name else []),
        STRING.encode("UserName" if name else "Anonymous"),
        STRING.encode("UA Binary"),
        STRING.encode("uatcp-uasc-uabinary"),
        INT32.encode(policy.Mode),
        STRING.encode(policy.URI),
        Primitives.Bytes.pack(session.certificate),
    )
    return ua.ExtensionObject(TypeId=_SECURITY_ENCODING, Body=b"".join(body))


def subscription_diagnostics(subscription: ClientSubscription) -> ua.SubscriptionDiagnosticsDataType:
    """Return the diagnostics of a subscription. It is never transferred to another client: that counter stays 0."""
    counts, items = subscription.counts, subscription.items
    return ua.SubscriptionDiagnosticsDataType(
        SessionId=subscription.session.session_id,
        SubscriptionId=subscription.id,
        Priority=counts.priority,
        ModifyCount=counts.modified,
        EnableCount=counts.enabled,
        DisableCount=counts.disabled,
        RepublishRequestCount=counts.republish_requests,
        RepublishMessageRequestCount=counts.republish_requests,
        RepublishMessageCount=counts.republished,
        TransferRequestCount=counts.transfer_requests,
        TransferredToSameClientCount=counts.transferred,
        PublishRequestCount=counts.publish_requests,
        DataChangeNotificationsCount=counts.values,
        EventNotificationsCount=counts.events,
        NotificationsCount=counts.values + counts.events,
        LatePublishRequestCount=counts.late,
        DiscardedMessageCount=counts.discarded_messages,
        MonitoringQueueOverflowCount=counts.value_overflows,
        EventQueueOverflowCount=counts.event_overflows,
        PublishingInterval=subscription.interval_ms,
        MaxKeepAliveCount=subscription.max_keep_alive_count,
        MaxLifetimeCount=subscription.lifetime_count,
        MaxNotificationsPerPublish=items.max_notifications,
        PublishingEnabled=subscription.is_enabled,
        CurrentKeepAliveCount=subscription.keep_alive_count,
        CurrentLifetimeCount=subscription.late_count,
        UnacknowledgedMessageCount=len(subscription.unacknowledged),
        MonitoredItemCount=len(items),
        DisabledMonitoredItemCount=items.disabled,
        NextSequenceNumber=subscription.next_number,
    )
