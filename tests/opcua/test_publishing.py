"""A subscription follows the publishing interval of its client, as measured by a client on another stack."""

import asyncio
from types import SimpleNamespace

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace
from asyncua.server.internal_subscription import InternalSubscription

from edge.opcua import limits
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.publishing import publish_for
from edge.opcua.time_slices import Turns
from tests.uaserver.other_stack import OtherStack, value_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLOCK, LEVEL = "i=2258", "i=2267"


async def test_a_modified_subscription_publishes_at_its_new_interval(other: OtherStack) -> None:
    slow = await other.subscription(requestedPublishingInterval=3_600_000)
    await other.monitor(slow, value_of(LEVEL))
    wanted = {
        "subscriptionId": slow,
        "requestedPublishingInterval": 1,
        "requestedLifetimeCount": 30,
        "requestedMaxKeepAliveCount": 10,
        "maxNotificationsPerPublish": 1,
    }
    revised = await other.send("ModifySubscription", **wanted)
    assert revised["revisedPublishingInterval"] == limits.DEFAULTS.min_publishing_interval_ms
    assert (revised["revisedLifetimeCount"], revised["revisedMaxKeepAliveCount"]) == (30, 10)
    await other.monitor(slow, value_of(CLOCK))
    assert len(await other.changes(2)) == 2
    await other.send("DeleteSubscriptions", subscriptionIds=[slow])


async def test_a_cancelled_publish_request_is_answered(other: OtherStack) -> None:
    session = await other.send("connect")
    made = await other.subscription(at=session, requestedPublishingInterval=3_600_000)
    cancelled = await other.send("cancelPublish", at=session)
    assert cancelled == {"count": 1, "fault": "BadRequestCancelledByClient"}
    assert (await other.send("Cancel", at=session, requestHandle=77_777))["cancelCount"] == 0
    await other.send("DeleteSubscriptions", at=session, subscriptionIds=[made])


async def test_deleted_subscription_uses_no_publish_request() -> None:
    """Its request was answered with a fault, and the next subscription waited for another one."""
    granted = ua.CreateSubscriptionResult(SubscriptionId=1, RevisedPublishingInterval=100)
    sent: list[object] = []
    made = InternalSubscription(granted, AddressSpace(), sent.append, ua.NodeId(), request_callback=lambda _: None)
    made.monitored_item_srv = MonitoredItems(made, made.monitored_item_srv.aspace, 0, limits.DEFAULTS)
    turns = Turns()
    session = SimpleNamespace(account=turns.account(""), connection=None)
    publish_for(made, session, turns)
    made._task = asyncio.create_task(asyncio.Event().wait())  # noqa: SLF001 - as the publishing loop of a subscription
    async with turns.work(session.account):
        publishing = asyncio.create_task(made.publish_results("a request"))
        await asyncio.sleep(0)
        await made.stop()
    assert not await publishing
    assert not sent
