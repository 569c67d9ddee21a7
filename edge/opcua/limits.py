"""The limits of clients: connections, sessions, bytes, operations, queued notifications."""

from collections.abc import Mapping
from types import MappingProxyType

from asyncua import ua

# asyncua would gather 100 MiB of chunks for anybody, before it knows who that is
# (github.com/FreeOpcUa/opcua-asyncio/issues/1962).
CHUNK_BYTES = 65_535
CHUNKS = 256
MESSAGE_BYTES = CHUNKS * CHUNK_BYTES
"""What one message may be, above all an answer: a thousand job orders of 16 KiB each."""

REQUEST_BYTES = 16 * CHUNK_BYTES
"""The largest request: decoded it takes a hundred times as much. An order has 256 KiB of JSON at most."""

REQUEST_SIZES: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                ua.ObjectIds.PublishRequest_Encoding_DefaultBinary,
                ua.ObjectIds.RepublishRequest_Encoding_DefaultBinary,
                ua.ObjectIds.CreateSubscriptionRequest_Encoding_DefaultBinary,
                ua.ObjectIds.ModifySubscriptionRequest_Encoding_DefaultBinary,
                ua.ObjectIds.DeleteSubscriptionsRequest_Encoding_DefaultBinary,
                ua.ObjectIds.TransferSubscriptionsRequest_Encoding_DefaultBinary,
                ua.ObjectIds.SetPublishingModeRequest_Encoding_DefaultBinary,
                ua.ObjectIds.FindServersRequest_Encoding_DefaultBinary,
                ua.ObjectIds.GetEndpointsRequest_Encoding_DefaultBinary,
            ),
            24 * 1024,
        ),
        **dict.fromkeys(
            (
                ua.ObjectIds.CreateSessionRequest_Encoding_DefaultBinary,
                ua.ObjectIds.ActivateSessionRequest_Encoding_DefaultBinary,
                ua.ObjectIds.CallRequest_Encoding_DefaultBinary,
            ),
            REQUEST_BYTES,
        ),
    }
)
"""The largest request of some services, by the id of its encoding; the others take OPERATION_BYTES."""

OPERATION_BYTES = 512 * 1024
"""The largest request of a service that takes many operations: a thousand of 500 bytes each."""

DECODED_AT_ONCE = 4 * 1024
"""Longer requests are decoded in a thread: asyncua needs about one microsecond for each byte."""

NOTIFICATIONS_PER_MESSAGE = 200
"""Notifications of one publish response; more follow in the next (MoreNotifications)."""

CONNECTIONS = 20
SESSIONS = 50
"""More than connections: a session with subscriptions waits for its client to come back."""

ACTIVATION_S = 30.0
"""The time limit, in seconds, for the activation of a new session."""

SUBSCRIPTIONS = 200
SUBSCRIPTIONS_OF_SESSION = 20
MONITORED_ITEMS_OF_SESSION = 2000

MIN_PUBLISHING_INTERVAL_MS = 50.0
MAX_PUBLISHING_INTERVAL_MS = 3_600_000.0
MAX_LIFETIME_MS = 3_600_000.0
"""Maximum lifetime of a subscription without Publish requests."""

QUEUED_EVENTS = 1000
QUEUED_VALUES = 10
"""The queue size of monitored values: the last value counts, and lists are long."""
SELECT_CLAUSES = 100
FILTER_ELEMENTS = 64
UNACKNOWLEDGED = 100
"""Sent messages of one subscription that are kept until the client acknowledges them."""

OPERATIONS: Mapping[str, int] = MappingProxyType(
    {
        "MaxNodesPerRead": 1000,
        "MaxNodesPerWrite": 1000,
        "MaxNodesPerMethodCall": 100,
        "MaxNodesPerBrowse": 500,
        "MaxNodesPerRegisterNodes": 1000,
        "MaxNodesPerTranslateBrowsePathsToNodeIds": 500,
        "MaxMonitoredItemsPerCall": 1000,
    }
)
"""The most operations of one request, by the property of OperationLimits (OPC 10000-5, 6.3.11)."""
