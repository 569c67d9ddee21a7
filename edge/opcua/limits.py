"""The limits of clients: connections, sessions, bytes, operations, queued notifications."""

from collections.abc import Mapping
from types import MappingProxyType

from asyncua import ua
from msgspec import Struct

# asyncua collects up to 100 MiB of chunks from a client before authentication
# (github.com/FreeOpcUa/opcua-asyncio/issues/1962).
CHUNK_BYTES = 65_535
CHUNKS = 256
MESSAGE_BYTES = CHUNKS * CHUNK_BYTES
"""The largest message, sized for an answer: a thousand job orders of 16 KiB each."""

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

ACTIVATION_S = 30.0
"""The time limit, in seconds, for the activation of a new session."""

MAX_PUBLISHING_INTERVAL_MS = 3_600_000.0
MAX_LIFETIME_MS = 3_600_000.0
"""Maximum lifetime of a subscription without Publish requests."""

SELECT_CLAUSES = 100
FILTER_ELEMENTS = 64
UNACKNOWLEDGED = 100
"""Sent messages of one subscription that are kept until the client acknowledges them."""


class ServerLimits(Struct, frozen=True):
    """The limits of a server that its settings can change; the defaults are those of the settings."""

    connections: int = 20
    sessions: int = 50
    """More than connections: a session with subscriptions waits for its client to come back."""
    subscriptions: int = 200
    subscriptions_of_session: int = 20
    monitored_items_of_session: int = 2000
    queued_values: int = 10
    """What is monitored here is state: the last value counts, and lists are long."""
    queued_events: int = 1000
    min_publishing_interval_ms: float = 50.0
    nodes_per_read: int = 1000
    nodes_per_browse: int = 500

    @property
    def operations(self) -> Mapping[str, int]:
        """What one request may ask for, by the name of the property of OperationLimits (OPC 10000-5, 6.3.11)."""
        return {
            "MaxNodesPerRead": self.nodes_per_read,
            "MaxNodesPerWrite": self.nodes_per_read,
            "MaxNodesPerMethodCall": METHOD_CALLS,
            "MaxNodesPerBrowse": self.nodes_per_browse,
            "MaxNodesPerRegisterNodes": self.nodes_per_read,
            "MaxNodesPerTranslateBrowsePathsToNodeIds": self.nodes_per_browse,
            "MaxMonitoredItemsPerCall": self.nodes_per_read,
        }


METHOD_CALLS = 100
"""Method calls of one request."""

DEFAULTS = ServerLimits()
