"""A subscription of a channel: refused with the server's reason, ended with the connection."""

from pathlib import Path

import pytest

from edge.foundation.errors import Unavailable
from edge.store.channel import Subscriptions
from edge.store.connection import CommandConnection, Endpoint
from edge.store.errors import AccessDenied
from tests.store.servers import own_server


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
