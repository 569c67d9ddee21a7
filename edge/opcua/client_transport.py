"""The bounded transport of OPC UA clients: asyncua would buffer gigabytes, or decode a few bytes to gigabytes."""

import asyncio
import errno
import logging
import re
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from asyncua import Client, ua
from asyncua.client.ua_client import UaClient, UASocketProtocol
from asyncua.common.connection import MessageChunk, SecureConnection, TransportLimits
from asyncua.common.shortcuts import Shortcuts
from asyncua.common.subscription import Subscription
from asyncua.common.utils import Buffer, NotEnoughData
from asyncua.crypto.security_policies import SecurityPolicy
from asyncua.observer import Observer, SubscriptionEvent
from asyncua.ua import ua_binary
from asyncua.ua.ua_binary import struct_from_binary
from msgspec import Struct

from edge.opcua.chunk_order import ChunkOrder

# asyncua would apply the limits that the server has for our requests to its answers, too; 0 switches its check off.
_LIMITS = TransportLimits(65535, 65535, 0, 0)

TOO_LARGE = (
    ua.uaerrors.BadResponseTooLarge,
    ua.uaerrors.BadEncodingLimitsExceeded,
    ua.uaerrors.BadTcpMessageTooLarge,
)
"""The errors of a server whose answer exceeds the limit that we announce (OPC 10000-6, 6.7.3, 7.1.2.3)."""


class MessageTooLargeError(ua.uaerrors.UaStructParsingError):
    """A message of the server exceeds the size limit and was skipped; asyncua then publishes again at once."""


class BoundedChannel(SecureConnection):
    """A channel that keeps at most `message_bytes` of a message; `fail` ends a request without an answer."""

    def __init__(
        self, policy: SecurityPolicy, message_bytes: int, fail: Callable[[int, ua.uaerrors.UaError], None]
    ) -> None:
        super().__init__(policy, _LIMITS)
        self._message_bytes = message_bytes
        self._fail = fail
        self._body_bytes = 0
        self._parts: list[MessageChunk] = []
        self._order = ChunkOrder()

    def _check_sym_header(self, security_hdr: ua.SymmetricAlgorithmHeader) -> None:
        """Accept the token before the present one too, for as long as its keys are valid.

        asyncua compares our clock with that of the server, and ended the channel after a renewal where the latter was
        behind: the answer to a Publish request may have the token of the request. The keys expire by a clock that
        only continues, and the signature is verified with them.
        """
        previous = self.prev_security_token.TokenId
        if previous == 0 or security_hdr.TokenId != previous:
            super()._check_sym_header(security_hdr)

    def _receive(self, msg: MessageChunk) -> ua.Message | None:
        """Return the message that a chunk completes; None when more follow, or when it is skipped or aborted."""
        self._order.check(msg, self.security_token.ChannelId)
        self._body_bytes += len(msg.Body)
        if self._body_bytes > self._message_bytes:
            self._parts.clear()
        else:
            self._parts.append(msg)
        if msg.MessageHeader.ChunkType == ua.ChunkType.Intermediate:
            return None
        parts, self._parts = self._parts, []
        size, self._body_bytes = self._body_bytes, 0
        if msg.MessageHeader.ChunkType == ua.ChunkType.Abort:
            # OPC 10000-6, 6.7.3: the request of an aborted message has failed, and the channel stays open.
            reason = struct_from_binary(ua.ErrorMessage, ua.utils.Buffer(msg.Body))
            self._fail(msg.SequenceHeader.RequestId, ua.uaerrors.UaStatusCodeError(reason.Error.value))
            return None
        if size > self._message_bytes:
            what = f"a message of {size} bytes was skipped: max_message_bytes is {self._message_bytes}"
            self._fail(msg.SequenceHeader.RequestId, MessageTooLargeError(what))
            return None
        return ua.Message(parts)


class ClientLimits(Struct, frozen=True):
    """The largest message of a server, and the bytes that may be received after the oldest waiting notification.

    A larger message is skipped. A decoded message takes many times as much memory. `opening_seconds` is the time limit
    of the connection and of the answer to its first message: one of a method of a device may be much longer.
    """

    message_bytes: int = 4 << 20
    waiting_bytes: int = 64 << 20
    opening_seconds: float = 5.0

    @property
    def announced_bytes(self) -> int:
        """The size of a message that is announced to the server: what it may send may come as one chunk."""
        return max(self.message_bytes, _ANNOUNCED_BYTES)


DEFAULT_LIMITS = ClientLimits()
_HEADER = struct.Struct("<3sci")
_KINDS = frozenset({b"ACK", b"ERR", b"OPN", b"MSG", b"CLO", b"RHE"})

# The least size that is announced: node-opcua reserves 512 KiB for an answer, and declines sessions below that.
_ANNOUNCED_BYTES = 1 << 20
# Bytes of a chunk around its part of the message: headers, padding and signature.
_AROUND_CHUNK = 1 << 12
_MAX_MESSAGE_LENGTH = 500
_QUEUED = 10_000
"""The most notifications that wait, as in asyncua."""
_REPEAT_SECONDS = 600.0
_MAX_MESSAGES = 100
_COMPARED = 200
_NUMBER = re.compile(r"-?[0-9]+")

_asyncua_unpack_array = ua_binary.unpack_uatype_array
_asyncua_read = Buffer.read


def patch_decoder_limits() -> None:
    """Patch the decoders of asyncua to refuse input that would take gigabytes or never end.

    An array of nulls takes no bytes, however long it says it is. A text of negative length would move back in the
    buffer and be read again. This is the only place that changes modules of asyncua; its readers have no other
    interface.
    """
    ua_binary.unpack_uatype_array = _unpack_array
    Buffer.read = _read


def _unpack_array(vtype: ua.VariantType, data: Buffer) -> list[Any] | None:
    if vtype is ua.VariantType.Null:
        raise ua.UaError("there is no array of nulls")
    unpacked: list[Any] | None = _asyncua_unpack_array(vtype, data)
    return unpacked


def _read(data: Buffer, size: int) -> bytes:
    if size < 0:
        raise NotEnoughData(f"there is nothing of the length {size}")
    taken: bytes = _asyncua_read(data, size)
    return taken


class NotificationQueue(asyncio.Queue[Any]):
    """A bounded queue of notifications; `received_bytes` returns the number of bytes received so far."""

    def __init__(self, most: int, received_bytes: Callable[[], int]) -> None:
        super().__init__(most)
        self._came = received_bytes
        self._came_before: deque[int] = deque()

    def waiting_bytes(self) -> int:
        """Return the number of bytes received since the oldest waiting notification."""
        return self._came() - self._came_before[0] if self._came_before else 0

    def _put(self, item: Any) -> None:
        super()._put(item)
        self._came_before.append(self._came())

    def _get(self) -> Any:
        self._came_before.popleft()
        return super()._get()


class SkippedNotification(Struct, frozen=True):
    """A stand-in for the notifications in a message that exceeds the size limit."""

    reason: str


class _BoundedProtocol(UASocketProtocol):
    """A protocol that accepts complete chunks of messages within the size limit."""

    def __init__(self, limits: ClientLimits, timeout: float, policy: SecurityPolicy) -> None:
        super().__init__(timeout, policy)
        self._limits = limits
        self._received = bytearray()
        self._connection: SecureConnection = BoundedChannel(policy, limits.message_bytes, self._fail)
        self._fault: ConnectionError | None = None
        self.received_bytes = 0
        """The number of bytes received so far."""
        self.waiting_bytes: Callable[[], int] = int
        """Returns the number of bytes that wait in the queue."""
        self.on_skipped: Callable[[str], None] = _ignore_skipped
        """Called with the reason when notifications were skipped."""
        self.on_unsubscribed: Callable[[], None] = _ignore_unsubscribed
        """Called when the server has dropped the subscription of an open session."""

    def data_received(self, data: bytes) -> None:
        """Process every complete chunk; check the header of the next before buffering more of it."""
        self.received_bytes += len(data)
        limits = self._limits
        if self.waiting_bytes() > limits.waiting_bytes:
            self._end(
                f"an OPC UA server sends faster than its notifications are taken: {limits.waiting_bytes} bytes wait"
            )
            return
        self._received += data
        while self.transport and not self.transport.is_closing() and len(self._received) >= _HEADER.size:
            kind, _final, size = _HEADER.unpack_from(self._received)
            if kind not in _KINDS:
                self._end("what answers is not an OPC UA server")
                return
            if size < _HEADER.size or size > limits.announced_bytes + _AROUND_CHUNK:
                self._end(f"an OPC UA server sends a message of more than {limits.announced_bytes} bytes")
                return
            if len(self._received) < size:
                return
            chunk = bytes(self._received[:size])
            del self._received[:size]
            super().data_received(chunk)

    async def send_hello(self, *args: Any, **kwargs: Any) -> ua.Acknowledge:
        """Send the first message and return its answer; raise ConnectionError when the connection has ended before."""
        if self.transport is None:
            # asyncua would wait for the answer.
            raise self._fault or ConnectionError("the server has closed the connection")
        async with asyncio.timeout(self._limits.opening_seconds):
            return await super().send_hello(*args, **kwargs)

    async def send_request(self, request: Any, *args: Any, **kwargs: Any) -> Buffer:
        """Send a request and return its answer; report an answer with notifications that is too large."""
        try:
            return await super().send_request(request, *args, **kwargs)
        except (MessageTooLargeError, *TOO_LARGE) as error:
            if isinstance(request, ua.PublishRequest):
                self.on_skipped(str(error))
            raise
        except ua.uaerrors.BadNoSubscription:
            # asyncua would wait in silence for notifications that no longer come.
            self.on_unsubscribed()
            raise
        except ConnectionError as error:
            # asyncua would report each lost connection as closed.
            raise self._fault or error from None

    def _fail(self, request_id: int, error: ua.uaerrors.UaError) -> None:
        """End the request of a message that was skipped or aborted."""
        future = self._callbackmap.pop(request_id, None)
        if future is not None and not future.done():
            future.set_exception(error)

    def _end(self, why: str) -> None:
        self._fault = ConnectionError(errno.EPROTO, why)
        # No request fails with this reason, so it is logged.
        self.logger.warning("%s", why)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail every pending request with the reason."""
        super().connection_lost(self._fault or exc)


def _ignore_skipped(_reason: str) -> None:
    """Ignore skipped notifications before a subscription is bound."""


def _ignore_unsubscribed() -> None:
    """Ignore the end of a subscription before one is bound."""


class _RecreationObserver(Observer):
    """Calls `on_recreated` when asyncua has replaced a silent subscription: its notifications are lost until then."""

    def __init__(self, on_recreated: Callable[[], None]) -> None:
        self._on_recreated = on_recreated

    def observe_request(self, request: Any) -> AbstractContextManager[None]:
        """Measure nothing."""
        return nullcontext()

    def on_subscription_event(self, subscription_id: int | None, event: SubscriptionEvent) -> None:
        """Report a subscription that replaces another one."""
        if event is SubscriptionEvent.RECREATED:
            self._on_recreated()


class _UaClient(UaClient):
    def __init__(self, limits: ClientLimits, timeout: float) -> None:
        super().__init__(timeout)
        self._limits = limits
        self._request_s = timeout

    async def connect_socket(self, host: str, port: int) -> None:
        """Connect to a server within the time limit; raises OSError or TimeoutError."""
        async with asyncio.timeout(self._limits.opening_seconds):
            await super().connect_socket(host, port)

    def _make_protocol(self) -> UASocketProtocol:
        self.protocol = _BoundedProtocol(self._limits, self._request_s, self.security_policy)
        self.protocol.pre_request_hook = self._pre_request_hook
        self.protocol.on_connection_lost = self._on_transport_lost
        self.protocol.is_session_closing = self._is_session_closing
        return self.protocol


class BoundedClient(Client):
    """asyncua's client with limits for what it receives; `timeout` is that of a request."""

    def __init__(
        self, url: str, timeout: float, watchdog_intervall: float, limits: ClientLimits = DEFAULT_LIMITS
    ) -> None:
        patch_decoder_limits()
        shorten_library_logs()
        super().__init__(url, timeout=timeout, watchdog_intervall=watchdog_intervall)
        self.limits = limits
        self.uaclient = _UaClient(limits, timeout)
        self.uaclient.pre_request_hook = self._wait_until_ready
        self.nodes = Shortcuts(self.uaclient.session)
        self.max_messagesize = limits.announced_bytes

    def bound(self, subscription: Subscription) -> None:
        """Close the connection when the waiting notifications of a subscription become too many bytes.

        Notifications that are too large themselves are replaced by a SkippedNotification. The subscription ends when
        the server has dropped it, or no longer publishes for it: what it did not report has to be read.
        """
        protocol = self.uaclient.protocol
        # asyncua accepts no queue from outside; no item is monitored yet, so no notification is lost.
        queue = NotificationQueue(_QUEUED, lambda: protocol.received_bytes)
        subscription._event_queue = queue  # noqa: SLF001
        protocol.waiting_bytes = queue.waiting_bytes

        def report(reason: str) -> None:
            # A full queue ends the connection anyhow.
            with suppress(asyncio.QueueFull):
                queue.put_nowait(SkippedNotification(reason))

        def end() -> None:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)

        protocol.on_skipped = report
        protocol.on_unsubscribed = end
        self.uaclient.observer = _RecreationObserver(end)


class RepeatedLogFilter(logging.Filter):
    """A log filter that passes each message at intervals, in one short line: a device may repeat it without end.

    Lost connections are logged by the equipment that uses them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is new, and shorten it."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError) or record.getMessage().endswith("but connection is closed"):
            return False
        text = record.getMessage()[:_MAX_MESSAGE_LENGTH]
        if error is not None:
            text = f"{text}: {type(error).__name__}: {error}"[:_MAX_MESSAGE_LENGTH]
        record.msg, record.args, record.exc_info = text, (), None
        # Messages that differ only in numbers count as the same.
        return record.levelno < logging.WARNING or self._is_new(_NUMBER.sub("#", text)[:_COMPARED])

    def _is_new(self, text: str) -> bool:
        now = time.monotonic()
        if now - self._logged.get(text, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        if len(self._logged) >= _MAX_MESSAGES:
            self._logged.clear()
        self._logged[text] = now
        return True


_LOGGERS = (
    "client.client",
    "client.ua_client.UaClient",
    "client.ua_client.UASocketProtocol",
    "client.ua_session",
    "client.ua_session.UaSession",
    "common.subscription",
    "ua.ua_binary",
    "uaprotocol",
)


def shorten_library_logs() -> None:
    """Filter the log messages of asyncua's client; calling it again changes nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(f"asyncua.{name}")
        if not any(isinstance(item, RepeatedLogFilter) for item in logger.filters):
            logger.addFilter(RepeatedLogFilter())
