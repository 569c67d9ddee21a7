"""Subscriptions of an OPC UA session, whose messages stay below the size limit of the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from asyncua import ua
from asyncua.common.subscription import OverflowPolicy, Subscription

from edge.links.opcua_errors import serving
from edge.opcua.client_transport import BoundedClient

_PUBLISHING_MS = 50
# Publishing intervals without a Publish request after which the server drops a subscription.
_LIFETIME = 10_000
_QUEUED_AT_MOST = 1000
# Time limit for the end of a subscription: an ended or busy server does not answer.
_GOODBYE_SECONDS = 1.0


@asynccontextmanager
async def open_subscription(client: BoundedClient, url: str, most: int) -> AsyncIterator[Subscription]:
    """Open a subscription for the length of the block; each of its messages holds at most `most` notifications.

    A message takes `most` times the size of a notification. Raises Unavailable when the server does not answer.
    """
    parameters = ua.CreateSubscriptionParameters(
        RequestedPublishingInterval=_PUBLISHING_MS,
        RequestedLifetimeCount=_LIFETIME,
        RequestedMaxKeepAliveCount=client.get_keepalive_count(_PUBLISHING_MS),
        MaxNotificationsPerPublish=most,
        PublishingEnabled=True,
    )
    with serving(url):
        # A full queue ends the connection: missed results are requested on the next one.
        subscription = await client.create_subscription(
            parameters, queue_maxsize=_QUEUED_AT_MOST, overflow=OverflowPolicy.DISCONNECT
        )
        client.bound(subscription)
        try:
            yield subscription
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await subscription.delete()
