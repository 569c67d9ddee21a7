"""Publishes subscriptions at an interval that the client may change; asyncua keeps the first interval."""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.internal_subscription import InternalSubscription

from edge.opcua import limits
from edge.opcua.limits import clamp
from edge.opcua.server_channel import ServerChannel
from edge.opcua.time_slices import Account, Turns


class SessionConnection(Protocol):
    """The functions of a connection that its session uses."""

    @property
    def channel(self) -> ServerChannel:
        """The open channel."""

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""

    async def flush(self) -> None:
        """Send the waiting answers."""

    @property
    def waiting_publish_requests(self) -> int:
        """The number of waiting publish requests."""

    @property
    def get_publish_request(self) -> Callable[..., Any]:
        """The source of publish requests for the subscriptions."""


class SubscriptionOwner(Protocol):
    """The session for which a subscription publishes."""

    account: Account
    connection: SessionConnection | None


def revise(asked: ua.CreateSubscriptionParameters | ua.ModifySubscriptionParameters, shortest_ms: float) -> None:
    """Limit the publishing interval and the lifetime that a client requests."""
    interval = clamp(asked.RequestedPublishingInterval, shortest_ms, limits.MAX_PUBLISHING_INTERVAL_MS)
    asked.RequestedPublishingInterval = interval
    longest = max(3, int(limits.MAX_LIFETIME_MS / interval))
    asked.RequestedLifetimeCount = lifetime = min(max(asked.RequestedLifetimeCount or longest, 3), longest)
    # A lifetime holds three keep-alive messages at the least (OPC 10000-4, 5.14.2.2).
    asked.RequestedMaxKeepAliveCount = min(asked.RequestedMaxKeepAliveCount or lifetime, lifetime // 3)


def start_publishing(subscription: InternalSubscription, session: SubscriptionOwner, turns: Turns) -> None:
    """Replace the publishing loop of asyncua, which has not run yet."""
    publish_for(subscription, session, turns)
    if subscription._task is not None:  # noqa: SLF001
        subscription._task.cancel()  # noqa: SLF001
    # asyncua cancels the task by this attribute when the subscription ends.
    subscription._task = asyncio.create_task(_publish_regularly(subscription), name="opcua subscription")  # noqa: SLF001


def publish_for(subscription: InternalSubscription, session: SubscriptionOwner, turns: Turns) -> None:
    """Publish a subscription as work of this session from now on."""
    subscription.publish_results = partial(_publish_in_turn, subscription, session, turns)


def modify(
    subscription: InternalSubscription, asked: ua.ModifySubscriptionParameters, shortest_ms: float
) -> ua.ModifySubscriptionResult:
    """Change interval, lifetime and message size of a subscription; return the values that hold."""
    revise(asked, shortest_ms)
    subscription.monitored_item_srv.counts.modified += 1
    subscription.monitored_item_srv.counts.priority = asked.Priority
    data = subscription.data
    data.RevisedPublishingInterval = asked.RequestedPublishingInterval
    data.RevisedLifetimeCount = asked.RequestedLifetimeCount
    data.RevisedMaxKeepAliveCount = asked.RequestedMaxKeepAliveCount
    items = subscription.monitored_item_srv
    items.limit_notifications(asked.MaxNotificationsPerPublish)
    items.modified.set()
    return ua.ModifySubscriptionResult(
        data.RevisedPublishingInterval, data.RevisedLifetimeCount, data.RevisedMaxKeepAliveCount
    )


def republish(subscription: InternalSubscription, asked: ua.RepublishParameters) -> ua.NotificationMessage:
    """Return a message that was not acknowledged. Raises ServiceError when it is not kept.

    asyncua forgets the message when it returns it, and returns an empty one for an unknown number.
    """
    counts = subscription.monitored_item_srv.counts
    counts.republish_requests += 1
    kept = subscription._not_acknowledged_results.get(asked.RetransmitSequenceNumber)  # noqa: SLF001
    if kept is None:
        raise ServiceError(ua.StatusCodes.BadMessageNotAvailable)
    counts.republished += 1
    return kept.NotificationMessage


async def _publish_regularly(subscription: InternalSubscription) -> None:
    loop = asyncio.get_running_loop()
    modified = subscription.monitored_item_srv.modified
    next_at = loop.time()
    while not subscription._closing:  # noqa: SLF001
        await subscription.publish_results()
        next_at = max(next_at + subscription.data.RevisedPublishingInterval / 1000, loop.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(next_at):
                await modified.wait()
            modified.clear()
            next_at = loop.time()


async def _publish_in_turn(
    subscription: InternalSubscription, session: SubscriptionOwner, turns: Turns, request: Any = None
) -> bool:
    """Publish the notifications of a subscription as work of its session, in as many messages as needed."""
    first = await _publish_once(subscription, session, turns, request)
    sent = first
    while sent and subscription.monitored_item_srv.has_more:
        sent = await _publish_once(subscription, session, turns, None)
    return first


async def _publish_once(
    subscription: InternalSubscription, session: SubscriptionOwner, turns: Turns, request: Any
) -> bool:
    counts = subscription.monitored_item_srv.counts
    was_late = subscription._publish_cycles_count > 0  # noqa: SLF001
    unacknowledged = len(subscription._not_acknowledged_results)  # noqa: SLF001
    async with turns.work(session.account):
        # It may have been deleted while it waited for its turn: the request then serves another subscription.
        is_open = not subscription._closing  # noqa: SLF001
        sent = is_open and bool(await InternalSubscription.publish_results(subscription, request))
    counts.late += not was_late and subscription._publish_cycles_count > 0  # noqa: SLF001
    # The oldest message has left: asyncua keeps as many as its limit.
    counts.discarded_messages += sent and unacknowledged == subscription._no_acks_limit  # noqa: SLF001
    if session.connection is not None:
        await session.connection.flush()
    return sent
