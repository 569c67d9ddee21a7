"""Commands that block: each has a connection of its own, which serves the next command after its reply."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.foundation.errors import Defect, Unavailable
from edge.store.blocking_connections import BlockingConnections, Subscriptions
from edge.store.connection import AccessDenied, CommandConnection, Endpoint
from tests.store.servers import Server, own_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with own_server(tmp_path) as running:
        yield running


@pytest.fixture
async def blocking(server: Server) -> AsyncIterator[BlockingConnections]:
    connections = BlockingConnections(_endpoint(server), 60.0)
    yield connections
    connections.close()


@pytest.fixture
async def observer(server: Server) -> AsyncIterator[CommandConnection]:
    connection = CommandConnection(_endpoint(server), timeout=60.0)
    yield connection
    connection.close()


def _endpoint(server: Server) -> Endpoint:
    return Endpoint(path=server.url[7:])


async def until_blocked(observer: CommandConnection, count: int) -> None:
    """Wait until the server has so many blocked clients."""
    async with asyncio.timeout(60):
        while f"blocked_clients:{count}\r\n" not in (await observer.call(("INFO", "clients")))[0]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_connection_serves_the_next_command_after_its_reply(blocking: BlockingConnections) -> None:
    first = await blocking.run(("CLIENT", "ID"))
    assert await blocking.run(("CLIENT", "ID")) == first


async def test_blocked_command_does_not_delay_others(
    blocking: BlockingConnections, observer: CommandConnection
) -> None:
    blocked = [asyncio.create_task(blocking.run(("BLPOP", f"list-{number}", "0"))) for number in range(3)]
    await until_blocked(observer, 3)
    assert await blocking.run(("ECHO", "free")) == "free"
    for number in range(3):
        await observer.call(("RPUSH", f"list-{number}", f"value-{number}"))
    replies = await asyncio.gather(*blocked)
    assert replies == [[f"list-{number}", f"value-{number}"] for number in range(3)]


async def test_server_ends_a_cancelled_command(blocking: BlockingConnections, observer: CommandConnection) -> None:
    blocked = asyncio.create_task(blocking.run(("BLPOP", "list", "0")))
    await until_blocked(observer, 1)
    blocked.cancel()
    await until_blocked(observer, 0)
    assert await blocking.run(("ECHO", "next")) == "next"


async def test_command_without_reply_in_time_is_unavailable(server: Server, observer: CommandConnection) -> None:
    impatient = BlockingConnections(_endpoint(server), 0.01)
    with pytest.raises(Unavailable, match="no reply in time"):
        await impatient.run(("BLPOP", "list", "0"))
    await until_blocked(observer, 0)
    impatient.close()


async def test_lost_server_is_unavailable_and_served_again_after_restart(
    server: Server, blocking: BlockingConnections, observer: CommandConnection
) -> None:
    blocked = asyncio.create_task(blocking.run(("BLPOP", "list", "0")))
    await until_blocked(observer, 1)
    await server.kill()
    with pytest.raises(Unavailable):
        await blocked
    await server.start()
    assert await blocking.run(("ECHO", "again")) == "again"


async def test_error_reply_leaves_the_connection_usable(blocking: BlockingConnections) -> None:
    first = await blocking.run(("CLIENT", "ID"))
    with pytest.raises(Defect, match="refuses"):
        await blocking.run(("NOSUCHCOMMAND",))
    assert await blocking.run(("CLIENT", "ID")) == first


async def test_subscription_that_the_user_may_not_have_is_refused(tmp_path: Path) -> None:
    user = ("--user", "station", "on", ">secret", "~*", "resetchannels", "+@all")
    async with own_server(tmp_path, *user) as server:
        endpoint = Endpoint(path=server.url[7:], username="station", password="secret")
        with pytest.raises(AccessDenied, match="may not"):
            async with Subscriptions(endpoint).subscribe("words"):
                pass


async def test_subscription_of_an_absent_server_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        async with Subscriptions(Endpoint(path=f"{tmp_path}/nowhere")).subscribe("words"):
            pass


async def test_messages_arrive_in_order(valkey: str, unique: str) -> None:
    endpoint = Endpoint(path=valkey.removeprefix("unix://"))
    async with Subscriptions(endpoint).subscribe(unique) as messages:
        connection = CommandConnection(endpoint)
        await connection.call(*(("PUBLISH", unique, str(number)) for number in range(200)))
        connection.close()
        assert [await anext(messages) for _ in range(200)] == [str(number) for number in range(200)]
