"""The limits of clients: connections, sessions, bytes, operations, queued notifications."""

import math
from collections.abc import Mapping, Sized
from dataclasses import dataclass  # noqa: TID251 - it extends a dataclass of asyncua
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.common.connection import MessageChunk, TransportLimits
from asyncua.common.utils import ServiceError
from asyncua.crypto.uacrypto import x509_from_der
from msgspec import Struct

from edge.opcua.application_certificate import application_uris

# asyncua collects up to 100 MiB of chunks from a client before authentication
# (github.com/FreeOpcUa/opcua-asyncio/issues/1962).
CHUNK_BYTES = 65_535
CHUNKS = 256
MESSAGE_BYTES = CHUNKS * CHUNK_BYTES
"""The largest message, sized for an answer: a thousand job orders of 16 KiB each."""

REQUEST_BYTES = 16 * CHUNK_BYTES
"""The largest request: decoded it takes a hundred times as much. An order has 256 KiB of JSON at most."""

MOST_ENCRYPTED_BLOCKS = 4
"""RSA blocks of an OpenSecureChannel and of a password: four hold a request that a key of 4096 bits has signed."""

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
FILTER_BYTES = 32 * 1024
"""The largest event filter: a monitored item and a continuation point of history keep it."""
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


@dataclass
class NegotiatedLimits(TransportLimits):
    """The limits of one connection: ours at first, after the Hello also those of the client.

    asyncua confuses the limits of the two directions, returns the buffer sizes in the wrong order, and sends answers of
    any size.
    """

    max_recv_buffer: int = CHUNK_BYTES
    max_send_buffer: int = CHUNK_BYTES
    max_chunk_count: int = CHUNKS
    max_message_size: int = MESSAGE_BYTES
    answer_chunks: int = CHUNKS
    answer_bytes: int = MESSAGE_BYTES

    def create_acknowledge_and_set_limits(self, msg: ua.Hello) -> ua.Acknowledge:
        """Set the limits both sides accept.

        Our own limits apply to answers too: asyncua and node-opcua receive no more than the limit of the server.
        """
        self.max_recv_buffer = min(msg.SendBufferSize, self.max_recv_buffer)
        self.max_send_buffer = min(msg.ReceiveBufferSize, self.max_send_buffer)
        self.answer_chunks = min(msg.MaxChunkCount or CHUNKS, CHUNKS)
        self.answer_bytes = min(msg.MaxMessageSize or MESSAGE_BYTES, MESSAGE_BYTES)
        return ua.Acknowledge(
            ReceiveBufferSize=self.max_recv_buffer,
            SendBufferSize=self.max_send_buffer,
            MaxMessageSize=self.max_message_size,
            MaxChunkCount=self.max_chunk_count,
        )

    def largest_answer(self, cryptography: Any) -> int:
        """Return the largest message that the client accepts with this encryption, in bytes.

        In the specification the limit applies to the message alone; node-opcua also counts the chunk headers.
        """
        in_chunk: int = MessageChunk.max_body_size(cryptography, self.max_send_buffer)
        around = self.max_send_buffer - in_chunk
        chunks, rest = divmod(self.answer_bytes, self.max_send_buffer)
        return min(chunks * in_chunk + max(rest - around, 0), self.answer_chunks * in_chunk)


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


def clamp(asked: float, least: float, most: float) -> float:
    """Return the nearest number within the bounds."""
    # A client may send NaN, for which no comparison is true.
    return least if math.isnan(asked) else min(max(asked, least), most)


def unknown_subscription() -> ua.StatusCode:
    """Return the status for a subscription that is not one of the session."""
    return ua.StatusCode(ua.StatusCodes.BadSubscriptionIdInvalid)
