"""A subscription follows the publishing interval of its client, as measured by a client on another stack."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.opcua import limits
from edge.opcua.server_channel import RequestKey
from edge.opcua.subscriptions import ClientSubscriptions, PublishRequest, PublishRequests
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


class _Connection:
    """A connection that keeps what is sent."""

    is_open = True
    largest_answer = 8192

    def __init__(self) -> None:
        self.sent: list[tuple[RequestKey, Any]] = []
        self.is_served = asyncio.Event()
        self.flushes = 0

    def respond(self, key: RequestKey, response: object) -> None:
        self.sent.append((key, response))
        self.is_served.set()

    def fail(self, key: RequestKey, code: int) -> None:
        self.sent.append((key, code))

    async def flush(self) -> None:
        """Everything is sent at once."""
        self.flushes += 1


def _session(turns: Turns, connection: _Connection) -> Any:
    return SimpleNamespace(account=turns.account(""), connection=connection, publish_requests=PublishRequests())


async def test_deleted_subscription_uses_no_publish_request() -> None:
    """Its request was answered with a fault, and the next subscription waited for another one."""
    turns, connection = Turns(), _Connection()
    session = _session(turns, connection)
    subscriptions = ClientSubscriptions(AddressSpace(), limits.DEFAULTS, turns)
    deleted = subscriptions.create(session, ua.CreateSubscriptionParameters()).SubscriptionId
    request = PublishRequest(RequestKey(1, 1), cast("Any", connection), (), math.inf)
    async with turns.work(session.account):
        subscription = subscriptions.get(deleted)
        assert subscription is not None
        publishing = asyncio.create_task(subscription.publish(request))
        await asyncio.sleep(0)
        subscriptions.delete(deleted)
    assert not await publishing
    assert not connection.sent


async def test_moved_subscription_leaves_the_request_of_its_old_session() -> None:
    """The session before got the notifications of a subscription that was transferred while it waited for its turn."""
    turns, before, after = Turns(), _Connection(), _Connection()
    old, new = _session(turns, before), _session(turns, after)
    subscriptions = ClientSubscriptions(AddressSpace(), limits.DEFAULTS, turns)
    subscription = subscriptions.get(subscriptions.create(old, ua.CreateSubscriptionParameters()).SubscriptionId)
    assert subscription is not None
    async with turns.work(old.account):
        arriving = PublishRequest(RequestKey(1, 1), cast("Any", before), (), math.inf)
        publishing = asyncio.create_task(subscription.publish(arriving))
        await asyncio.sleep(0)
        subscription.move(new)
    assert not await publishing
    assert (before.sent, before.flushes) == ([], 0)
    waiting = PublishRequest(RequestKey(2, 2), cast("Any", after), (), math.inf)
    await new.publish_requests.add(waiting, 1)
    async with asyncio.timeout(5):
        await after.is_served.wait()
    assert [key for key, _ in after.sent] == [RequestKey(2, 2)]


async def test_request_of_a_lost_connection_answers_no_subscription() -> None:
    """It came to the queue of its session after another connection had taken the session over."""
    turns, lost, connection = Turns(), _Connection(), _Connection()
    session = _session(turns, connection)
    for number, source in enumerate((lost, connection)):
        await session.publish_requests.add(
            PublishRequest(RequestKey(number, number), cast("Any", source), (), math.inf), 1
        )
    subscriptions = ClientSubscriptions(AddressSpace(), limits.DEFAULTS, turns)
    subscriptions.create(session, ua.CreateSubscriptionParameters())
    async with asyncio.timeout(5):
        await connection.is_served.wait()
    assert lost.sent == []


async def test_expired_publish_request_is_answered_with_a_timeout() -> None:
    turns, connection = Turns(), _Connection()
    session = _session(turns, connection)
    for number, expires_at in enumerate((0.0, math.inf)):
        waiting = PublishRequest(RequestKey(number, number), cast("Any", connection), (), expires_at)
        await session.publish_requests.add(waiting, 1)
    made = ClientSubscriptions(AddressSpace(), limits.DEFAULTS, turns).create(
        session, ua.CreateSubscriptionParameters()
    )
    async with asyncio.timeout(5):
        await connection.is_served.wait()
    (expired, code), (used, publication) = connection.sent
    assert (expired, code, used) == (RequestKey(0, 0), ua.StatusCodes.BadTimeout, RequestKey(1, 1))
    assert publication.subscription_id == made.SubscriptionId


class _Broken(_Connection):
    """A connection on which no answer can be encoded."""

    def respond(self, key: RequestKey, response: object) -> None:
        raise ValueError("a value of another type")


async def test_subscription_that_cannot_publish_ends_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """It stayed without a task, and its Publish request without an answer: its client heard nothing for ever."""
    turns, connection = Turns(), _Broken()
    session = _session(turns, connection)
    await session.publish_requests.add(PublishRequest(RequestKey(1, 1), cast("Any", connection), (), math.inf), 1)
    subscriptions = ClientSubscriptions(AddressSpace(), limits.DEFAULTS, turns)
    before = asyncio.all_tasks()
    made = subscriptions.create(session, ua.CreateSubscriptionParameters()).SubscriptionId
    (publishing,) = asyncio.all_tasks() - before
    await asyncio.wait([publishing], timeout=5)
    assert subscriptions.get(made) is None
    assert connection.sent == [(RequestKey(1, 1), ua.StatusCodes.BadInternalError)]
    assert "a value of another type" in capsys.readouterr().out
