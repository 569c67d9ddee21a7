"""Every private name of asyncua that the product uses or overrides, with the reason."""

from msgspec import Struct


class PrivateName(Struct, frozen=True):
    """A private name of a class or module of asyncua, and why it is needed.

    `fingerprint` is the signature of a function, or "attribute" for what a constructor sets.
    """

    owner: str
    name: str
    fingerprint: str
    reason: str


_PROCESSOR = "asyncua.server.uaprocessor.UaProcessor"
_SECURE = "asyncua.common.connection.SecureConnection"

_PROTOCOL = "asyncua.client.ua_client.UASocketProtocol"

PRIVATE_NAMES = (
    PrivateName(_PROTOCOL, "_connection", "attribute", "Our connection skips messages beyond the size limit."),
    PrivateName(_PROTOCOL, "_callbackmap", "attribute", "The request of a skipped message fails with the reason."),
    PrivateName(
        _SECURE,
        "_receive",
        "(self, msg: 'MessageChunk') -> 'ua.Message | None'",
        "A message beyond the size limit is skipped, an aborted one fails its request.",
    ),
    PrivateName(_SECURE, "_incoming_parts", "attribute", "The chunks of a message until it is complete."),
    PrivateName(
        "asyncua.server.address_space.AddressSpace",
        "_nodes",
        "attribute",
        "The nodes come from the prepared types and from running charts; asyncua replaces them in its own loader.",
    ),
    PrivateName(
        "asyncua.server.address_space.AddressSpace",
        "_handle_to_attribute_map",
        "attribute",
        "Values of a chart that has ended are forgotten; no public method removes a handle of a removed node.",
    ),
    PrivateName(
        _PROCESSOR, "_process_message", "(self, typeid, requesthdr, seqhdr, body)", "Calls are decoded by our codec."
    ),
    PrivateName(_PROCESSOR, "_connection", "attribute", "The channel is ours, with limits, trust and expiry."),
    PrivateName(_PROCESSOR, "_transport", "attribute", "Answers leave in chunks, as the client takes them."),
    PrivateName(_PROCESSOR, "_session_watchdog_task", "attribute", "A session moves to a new connection."),
    PrivateName(
        _SECURE,
        "_check_sym_header",
        "(self, security_hdr: 'ua.SymmetricAlgorithmHeader') -> 'None'",
        "Tokens expire by the monotonic clock.",
    ),
    PrivateName(_SECURE, "_sequence_number", "attribute", "Chunks are numbered when they are sent."),
    PrivateName(_SECURE, "_open", "attribute", "Messages are taken on an open channel only."),
    PrivateName(_SECURE, "_policies", "attribute", "The policy without security serves discovery."),
    PrivateName(
        "asyncua.server.binary_server_asyncio.OPCUAProtocol",
        "_process_one_msg",
        "(self, header: 'Any', buf: 'Buffer') -> 'bool'",
        "Requests wait while the client takes no answers.",
    ),
    PrivateName(
        "asyncua.server.binary_server_asyncio.BinaryServer",
        "_make_protocol",
        "(self) -> 'OPCUAProtocol'",
        "Connections are ours.",
    ),
    PrivateName(
        "asyncua.common.subscription.Subscription",
        "_event_queue",
        "attribute",
        "The queue of a client is bounded in bytes.",
    ),
    PrivateName(
        "asyncua.common.subscription.Subscription",
        "_queue_maxsize",
        "attribute",
        "The bounded queue has the same length.",
    ),
    PrivateName(
        "asyncua.client.ua_client.UaClient",
        "_make_protocol",
        "(self) -> 'UASocketProtocol'",
        "Messages of a server are bounded.",
    ),
    PrivateName(
        "asyncua.ua.ua_binary",
        "unpack_uatype_array",
        "(vtype: 'ua.VariantType', data: 'Buffer | IO') -> 'list[Any] | None'",
        "Arrays of nulls are refused (patched by patch_decoder_limits).",
    ),
    PrivateName(
        "asyncua.common.utils.Buffer",
        "read",
        "(self, size: int) -> bytes",
        "Negative lengths are refused (patched).",
    ),
)
