"""Subscriptions of an OPC UA session below the size limit of the connection, and the values that they monitor."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import structlog
from asyncua import ua
from asyncua.common.subscription import DataChangeEvent, OverflowPolicy, Subscription
from msgspec import Struct

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.links.opcua_requests import serving
from edge.model.instant import milliseconds_of
from edge.opcua.client_transport import BoundedClient, SkippedNotification
from edge.ports.sample_lines import Quality, Sample

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


class MonitoredValue(Struct, frozen=True):
    """A variable as a tag: `node` is a NodeId as text, with `nsu=` for a namespace, or the path `/A/B` below Objects.

    `sampling_interval` is in milliseconds.
    """

    tag: str
    node: str
    sampling_interval: float
    queue_size: int


class ValueWatch:
    """A subscription to values; `resolve` finds a node, `plain` decodes a value."""

    def __init__(
        self,
        subscription: Subscription,
        resolve: Callable[[str], Awaitable[ua.NodeId]],
        plain: Callable[[Any], Awaitable[Any]],
        clock: Clock,
    ) -> None:
        self._subscription = subscription
        self._resolve = resolve
        self._plain = plain
        self._clock = clock
        self._tags: dict[int, str] = {}
        self._log = LogThrottle(structlog.get_logger(__name__))

    async def add(self, values: Sequence[MonitoredValue]) -> dict[str, str]:
        """Monitor values; return the tags that the server refuses, with the reason."""
        refused: dict[str, str] = {}
        for value in values:
            try:
                node_id = await self._resolve(value.node)
            except (Refused, ua.UaError, ValueError) as error:
                refused[value.tag] = str(error)
                continue
            status = await self._create(value, node_id)
            if status is not None:
                refused[value.tag] = f"{value.node}: {status.name}"
        return refused

    async def take(self) -> Sample:
        """Wait for the next change. Raises Unavailable when the connection is lost."""
        async for event in self._subscription:
            if isinstance(event, SkippedNotification):
                self._log.warning("values skipped", "", reason=event.reason)
                continue
            if not isinstance(event, DataChangeEvent):
                break
            item = event.data.monitored_item
            if tag := self._tags.get(item.ClientHandle):
                return await self._sample(tag, item.Value)
        raise Unavailable("the connection to the OPC UA server is lost", "It is opened again.")

    async def _sample(self, tag: str, value: ua.DataValue) -> Sample:
        at, quality = self._instant(value.SourceTimestamp), quality_of(value.StatusCode)
        try:
            plain = await self._plain(value.Value) if value.Value is not None else None
        except Refused:
            plain, quality = None, Quality.BAD
        return Sample(at, tag, plain.isoformat() if isinstance(plain, datetime) else plain, quality)

    def _instant(self, at: datetime | None) -> int:
        instant = milliseconds_of(at)
        return self._clock() if instant is None else instant

    async def _create(self, value: MonitoredValue, node_id: ua.NodeId) -> ua.StatusCode | None:
        """Create one monitored item; return the status code of a refusal."""
        handle = len(self._tags) + 1
        wanted = ua.MonitoringParameters(
            ClientHandle=handle,
            SamplingInterval=value.sampling_interval,
            QueueSize=value.queue_size,
            DiscardOldest=True,
        )
        request = ua.MonitoredItemCreateRequest(
            ItemToMonitor=ua.ReadValueId(NodeId=node_id, AttributeId=ua.AttributeIds.Value),
            MonitoringMode=ua.MonitoringMode.Reporting,
            RequestedParameters=wanted,
        )
        self._tags[handle] = value.tag
        (result,) = await self._subscription.create_monitored_items([request])
        if isinstance(result, ua.StatusCode):
            # The handle is not used again: the number of handles only grows.
            self._tags[handle] = ""
            return result
        return None


def quality_of(status: ua.StatusCode | None) -> Quality:
    """Return the quality of a StatusCode (OPC 10000-4, 7.39); an absent one is Good."""
    if status is None or status.is_good():
        return Quality.GOOD
    return Quality.UNCERTAIN if status.is_uncertain() else Quality.BAD
