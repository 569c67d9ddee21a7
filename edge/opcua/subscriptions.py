"""Subscriptions: they publish at an interval that the client may change, for the session that owns them.

asyncua keeps the first interval, returns an empty message for an unknown number of Republish, and forgets the message
that it returns. Its Publish requests belong to a connection.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, Protocol

import structlog
from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace
from msgspec import Struct

from edge.opcua.answer_encoding import EncodedMessage, Publication
from edge.opcua.limits import (
    MAX_LIFETIME_MS,
    MAX_PUBLISHING_INTERVAL_MS,
    UNACKNOWLEDGED,
    ServerLimits,
    clamp,
    unknown_subscription,
)
from edge.opcua.monitored_items import MonitoredItem, MonitoredItems
from edge.opcua.request_counts import SubscriptionCounts
from edge.opcua.server_channel import RequestKey, ServerChannel
from edge.opcua.time_slices import Account, Turns

logger = structlog.get_logger(__name__)

_KEEPS_UP = 3
"""A client that has not acknowledged so many messages does not keep up: they are kept until it does."""

_SPARE_REQUESTS = 10
"""Publish requests that may wait, above one for each subscription."""

_LAST_NUMBER = (1 << 32) - 1

_AROUND_MESSAGE = 256
"""Bytes of a response in addition to its notifications and numbers."""


class SessionConnection(Protocol):
    """The functions of a connection that its session uses."""

    @property
    def channel(self) -> ServerChannel:
        """The open channel."""

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""

    @property
    def largest_answer(self) -> int:
        """The largest answer that the client takes, in bytes."""

    def respond(self, key: RequestKey, response: Any) -> None:
        """Send the answer to a request. Raises ServiceError when it is too large."""

    def fail(self, key: RequestKey, code: int) -> None:
        """Answer a request with a fault."""

    async def flush(self) -> None:
        """Send the waiting answers."""


class SubscriptionOwner(Protocol):
    """The session for which a subscription publishes."""

    session_id: ua.NodeId
    locales: tuple[str, ...]
    account: Account
    connection: SessionConnection
    publish_requests: "PublishRequests"


class PublishRequest(Struct, frozen=True):
    """A Publish request that waits for notifications; `results` are those of its acknowledgements."""

    key: RequestKey
    connection: SessionConnection
    results: Sequence[ua.StatusCode]
    expires_at: float
    """On the clock of the event loop."""


class PublishRequests:
    """The Publish requests of a session that wait, and the subscriptions that wait for one."""

    def __init__(self) -> None:
        self._waiting: deque[PublishRequest] = deque()
        self._late: dict[ClientSubscription, None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, subscription: "ClientSubscription") -> PublishRequest | None:
        """Take the oldest request; without one the subscription gets the next that arrives."""
        while self._waiting:
            request = self._waiting.popleft()
            if request.connection is not subscription.session.connection:  # the session has moved to another one
                continue
            if request.expires_at >= asyncio.get_running_loop().time():
                return request
            request.connection.fail(request.key, ua.StatusCodes.BadTimeout)
        self._late[subscription] = None
        return None

    async def add(self, request: PublishRequest, subscriptions: int) -> None:
        """Serve a subscription that waits, or keep the request; the oldest leaves when too many wait."""
        while self._late:
            subscription = next(iter(self._late))
            del self._late[subscription]
            if await subscription.publish(request):
                return
        if len(self._waiting) >= subscriptions + _SPARE_REQUESTS:
            oldest = self._waiting.popleft()
            oldest.connection.fail(oldest.key, ua.StatusCodes.BadTooManyPublishRequests)
        self._waiting.append(request)

    def cancel(self, handle: int) -> int:
        """Answer the requests with a handle; return their number (OPC 10000-4, 5.7.5)."""
        cancelled = [request for request in self._waiting if request.key.handle == handle]
        for request in cancelled:
            self._waiting.remove(request)
            request.connection.fail(request.key, ua.StatusCodes.BadRequestCancelledByClient)
        return len(cancelled)

    def forget(self, subscription: "ClientSubscription") -> None:
        """Serve a subscription no longer: it was deleted, or has another session."""
        self._late.pop(subscription, None)

    def clear(self) -> None:
        """Forget the requests: their connection is lost."""
        self._waiting.clear()


def revise(asked: ua.CreateSubscriptionParameters | ua.ModifySubscriptionParameters, shortest_ms: float) -> None:
    """Limit the publishing interval and the lifetime that a client requests."""
    interval = clamp(asked.RequestedPublishingInterval, shortest_ms, MAX_PUBLISHING_INTERVAL_MS)
    asked.RequestedPublishingInterval = interval
    longest = max(3, int(MAX_LIFETIME_MS / interval))
    asked.RequestedLifetimeCount = lifetime = min(max(asked.RequestedLifetimeCount or longest, 3), longest)
    # A lifetime holds three keep-alive messages at the least (OPC 10000-4, 5.14.2.2).
    asked.RequestedMaxKeepAliveCount = min(asked.RequestedMaxKeepAliveCount or lifetime, lifetime // 3)


class ClientSubscription:
    """A subscription of a session; `start` publishes it until it is closed or its lifetime ends."""

    def __init__(
        self,
        number: int,
        session: SubscriptionOwner,
        asked: ua.CreateSubscriptionParameters,
        aspace: AddressSpace,
        limits: ServerLimits,
        turns: Turns,
    ) -> None:
        self.id = number
        self.session = session
        self.interval_ms: float = asked.RequestedPublishingInterval
        self.lifetime_count: int = asked.RequestedLifetimeCount
        self.max_keep_alive_count: int = asked.RequestedMaxKeepAliveCount
        self.is_enabled: bool = asked.PublishingEnabled
        self.counts = SubscriptionCounts(priority=asked.Priority)
        self.items = MonitoredItems(aspace, asked.MaxNotificationsPerPublish, limits, self.counts)
        self.unacknowledged: dict[int, EncodedMessage] = {}
        """The messages that Republish returns."""
        self.next_number = 1
        self.keep_alive_count = 0
        """Cycles without a message."""
        self.late_count = 0
        """Cycles without a Publish request for what is to be published."""
        self.is_closed = False
        self._turns = turns
        self._is_new = True
        self._modified = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, subscriptions: "ClientSubscriptions") -> None:
        """Publish regularly; end it in `subscriptions` after its lifetime."""
        self._task = asyncio.create_task(self._publish_regularly(subscriptions), name="opcua subscription")

    async def _publish_regularly(self, subscriptions: "ClientSubscriptions") -> None:
        try:
            await self._publish_until_late()
        except Exception as error:  # noqa: BLE001 - its client hears of the end, not of nothing for ever
            self._end(error)
        subscriptions.delete(self.id)

    def _end(self, error: Exception) -> None:
        logger.error("OPC UA subscription ended by a defect", subscription=self.id, reason=repr(error))
        self.is_closed = True
        self._modified.set()

    async def _publish_until_late(self) -> None:
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        while self.late_count <= self.lifetime_count and not self.is_closed:
            await self.publish()
            next_at = max(next_at + self.interval_ms / 1000, loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_at):
                    await self._modified.wait()
                self._modified.clear()
                next_at = loop.time()

    def close(self) -> None:
        """End it with its items."""
        self.is_closed = True
        self.session.publish_requests.forget(self)
        self.items.clear()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def modify(self, asked: ua.ModifySubscriptionParameters, shortest_ms: float) -> ua.ModifySubscriptionResult:
        """Change interval, lifetime and message size; return the values that hold."""
        revise(asked, shortest_ms)
        self.counts.modified += 1
        self.counts.priority = asked.Priority
        self.interval_ms = asked.RequestedPublishingInterval
        self.lifetime_count = asked.RequestedLifetimeCount
        self.max_keep_alive_count = asked.RequestedMaxKeepAliveCount
        self.items.limit_notifications(asked.MaxNotificationsPerPublish)
        self._modified.set()
        return ua.ModifySubscriptionResult(self.interval_ms, self.lifetime_count, self.max_keep_alive_count)

    def move(self, session: SubscriptionOwner) -> None:
        """Publish for another session from now on."""
        self.session.publish_requests.forget(self)
        self.session = session

    def acknowledge(self, number: int) -> ua.StatusCode:
        """Forget a message that the client has."""
        if self.unacknowledged.pop(number, None) is None:
            return ua.StatusCode(ua.StatusCodes.BadSequenceNumberUnknown)
        return ua.StatusCode()

    def message(self, number: int) -> EncodedMessage:
        """Return a message that was not acknowledged. Raises ServiceError when it is not kept."""
        self.counts.republish_requests += 1
        message = self.unacknowledged.get(number)
        if message is None:
            raise ServiceError(ua.StatusCodes.BadMessageNotAvailable)
        self.counts.republished += 1
        return message

    def has_room(self, item: MonitoredItem, most: int) -> bool:
        """Return whether an item takes another event without loss, and its client keeps up with what was sent.

        Less than `most` events are queued then.
        """
        return len(item.queue) < min(item.queue_size, most) and len(self.unacknowledged) < _KEEPS_UP

    async def publish(self, request: PublishRequest | None = None) -> bool:
        """Publish what is due as work of its session, in as many messages as needed; return whether there was any.

        The first message answers `request`, which has just arrived, the others those that wait.
        """
        is_sent = has_sent = await self._publish_once(request)
        while is_sent and self._has_more:
            is_sent = await self._publish_once(None)
        return has_sent

    async def _publish_once(self, request: PublishRequest | None) -> bool:
        async with self._turns.work(self.session.account):
            # While it waited for its turn it may have been deleted, or moved to another session or connection: the
            # request then serves another subscription.
            connection = self.session.connection
            is_served = request is None or request.connection is connection
            is_sent = is_served and not self.is_closed and self._is_due(request) and self._send(request)
        await connection.flush()
        return is_sent

    @property
    def _has_more(self) -> bool:
        return self.is_enabled and self.items.has_notifications

    def _is_due(self, request: PublishRequest | None) -> bool:
        """Return whether there is something to publish: notifications, or that the subscription is alive."""
        if self._is_new or self._has_more:
            return True
        self.keep_alive_count += request is None
        return self.keep_alive_count >= self.max_keep_alive_count

    def _send(self, request: PublishRequest | None) -> bool:
        request = request or self.session.publish_requests.take(self)
        if request is None:
            self.counts.late += self.late_count == 0
            self.late_count += 1
            return False
        try:
            self._answer(request)
        except ServiceError as error:
            # The results of thousands of acknowledgements fill a message alone.
            request.connection.fail(request.key, error.code)
        except Exception as error:  # noqa: BLE001 - its client hears of the end, not of nothing for ever
            request.connection.fail(request.key, ua.StatusCodes.BadInternalError)
            self._end(error)
        return True

    def _answer(self, request: PublishRequest) -> None:
        """Answer a request with what is due. Raises ServiceError when the answer is too large."""
        self._is_new = False
        self.keep_alive_count = self.late_count = 0
        self.counts.publish_requests += 1
        numbers = 4 * (len(self.unacknowledged) + 1 + len(request.results))
        room = request.connection.largest_answer - _AROUND_MESSAGE - numbers
        message = EncodedMessage(self.next_number, datetime.now(UTC), self.items.take(room) if self.is_enabled else ())
        if message.notifications:
            self.next_number = self.next_number % _LAST_NUMBER + 1
            self.unacknowledged[message.number] = message
            if len(self.unacknowledged) > UNACKNOWLEDGED:
                del self.unacknowledged[next(iter(self.unacknowledged))]
                self.counts.discarded_messages += 1
        publication = Publication(self.id, list(self.unacknowledged), self._has_more, message, request.results)
        request.connection.respond(request.key, publication)


class ClientSubscriptions:
    """The subscriptions of all sessions, by their ids."""

    def __init__(self, aspace: AddressSpace, limits: ServerLimits, turns: Turns) -> None:
        self._aspace = aspace
        self._limits = limits
        self._turns = turns
        # A client that was lost before a restart of the server does not know one of another client.
        self._ids = count(secrets.randbelow(1 << 30) + 1)
        self._subscriptions: dict[int, ClientSubscription] = {}

    def __iter__(self) -> Iterator[ClientSubscription]:
        return iter(tuple(self._subscriptions.values()))

    def __len__(self) -> int:
        return len(self._subscriptions)

    def get(self, number: int) -> ClientSubscription | None:
        """Return the subscription of this id."""
        return self._subscriptions.get(number)

    def owned_by(self, session: SubscriptionOwner) -> list[ClientSubscription]:
        """Return the subscriptions of a session."""
        return [subscription for subscription in self._subscriptions.values() if subscription.session is session]

    def create(self, session: SubscriptionOwner, asked: ua.CreateSubscriptionParameters) -> ua.CreateSubscriptionResult:
        """Create a subscription with a bounded publishing interval and lifetime."""
        revise(asked, self._limits.min_publishing_interval_ms)
        subscription = ClientSubscription(next(self._ids), session, asked, self._aspace, self._limits, self._turns)
        self._subscriptions[subscription.id] = subscription
        subscription.start(self)
        return ua.CreateSubscriptionResult(
            subscription.id, subscription.interval_ms, subscription.lifetime_count, subscription.max_keep_alive_count
        )

    def delete(self, number: int) -> ua.StatusCode:
        """End a subscription."""
        subscription = self._subscriptions.pop(number, None)
        if subscription is None:
            return unknown_subscription()
        subscription.close()
        return ua.StatusCode()
