"""Lost clients and greedy ones do not take the places of others."""

import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from asyncua import Client, ua

from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.clients import serves
from tests.uaserver.running import MACHINES, SETTINGS, served

OF_ONE = 4
PARAMETERS = ua.CreateSubscriptionParameters(3_600_000, 10_000, 3000, 0, True, 0)


@pytest_asyncio.fixture
async def small() -> AsyncIterator[UaServer]:
    """A server for two sessions with four subscriptions each."""
    limits = {"max_connections": 2, "max_sessions": 3, "max_subscriptions_per_session": OF_ONE}
    settings = msgspec.structs.replace(SETTINGS, **limits, max_subscriptions=2 * OF_ONE)
    async with served(settings, MACHINES[:1]) as running:
        yield running


async def subscribe(client: Client, count: int) -> None:
    for _ in range(count):
        await client.uaclient.create_subscription(PARAMETERS, lambda _: None)


@contextlib.asynccontextmanager
async def lost(server: UaServer, count: int) -> AsyncIterator[None]:
    """A client with subscriptions whose connection breaks."""
    client = patient_client(server.endpoint)
    await client.connect()
    await subscribe(client, count)
    client.uaclient.protocol.transport.abort()
    yield
    client.disconnect_socket()


async def test_subscriptions_of_lost_clients_make_room(small: UaServer) -> None:
    """Ten connections that took all subscriptions and dropped kept all others out for ten minutes."""
    async with lost(small, OF_ONE), lost(small, OF_ONE), patient_client(small.endpoint) as client:
        await subscribe(client, OF_ONE)
        assert await serves(client)


async def test_sessions_of_lost_clients_make_room(small: UaServer) -> None:
    async with lost(small, 1), lost(small, 1), lost(small, 1), patient_client(small.endpoint) as client:
        assert await serves(client)


async def test_address_has_half_of_all_subscriptions(small: UaServer) -> None:
    async with patient_client(small.endpoint) as other:
        async with patient_client(small.endpoint) as greedy:
            await subscribe(greedy, OF_ONE)
            with pytest.raises(ua.uaerrors.BadTooManySubscriptions):
                await subscribe(other, 1)
        await subscribe(other, OF_ONE)
