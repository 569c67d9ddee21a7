"""A foreign Redis is read with read permission only; a value that is not a list is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import redis.asyncio as aioredis
from redis import exceptions

from edge.foundation.errors import Defect, EdgeError, Unavailable
from edge.store.connection import AccessDenied, OutOfMemory
from edge.store.other_redis import MAX_MEMBERS, decode_list, open_foreign, translate_errors
from tests.store.servers import Server, own_server


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """The server of another system with a user who may only read."""
    async with own_server(tmp_path) as running:
        owner = aioredis.Redis(unix_socket_path=running.url[7:])
        reading = ["+type", "+get", "+strlen", "+smembers", "+scard", "+lrange", "+client|setinfo", "+select"]
        reading += ["+getrange", "+psubscribe", "&*"]
        await owner.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~*", "-@all", *reading)
        await owner.set("packed", msgspec.msgpack.encode(["C1", 2]))
        await owner.set("json", b'["C1"]')
        await owner.set("text", b"C1")
        await owner.set("bomb", b"\x91" * 100_000)
        await owner.sadd("set", "C1", "C2")
        await owner.sadd("bytes", b"C\xdc", b"C\xdd")
        await owner.rpush("list", "C1", "C2", "C1")
        await owner.rpush("long", *range(MAX_MEMBERS + 1))
        await owner.hset("hash", "a", "b")
        await owner.aclose()
        yield running


async def test_members_are_read_by_a_read_only_user(server: Server) -> None:
    async with open_foreign(f"unix://reader:pw@{server.url[7:]}") as foreign:
        assert await foreign.read_members("packed") == {"C1", "2"}
        assert await foreign.read_members("json") == {"C1"}
        assert await foreign.read_members("set") == await foreign.read_members("list") == {"C1", "C2"}
        assert await foreign.read_members("absent") == set()
        for key in ("text", "bomb", "long", "hash"):
            with pytest.raises(Unavailable):
                await foreign.read_members(key)


async def test_members_that_are_not_utf8_stay_different(server: Server) -> None:
    async with open_foreign(server.url) as foreign:
        assert await foreign.read_members("bytes") == {r"C\xdc", r"C\xdd"}


async def test_killed_server_is_unavailable_and_read_again_after_restart(server: Server) -> None:
    async with open_foreign(server.url) as foreign:
        assert await foreign.read_members("set")
        await server.kill()
        with pytest.raises(Unavailable):
            await foreign.read_members("set")
        await server.start()
        async with asyncio.timeout(30):
            assert await foreign.read_members("json") is not None


async def test_texts_are_read_and_truncated_by_a_read_only_user(server: Server) -> None:
    async with open_foreign(f"unix://reader:pw@{server.url[7:]}") as foreign:
        found = await foreign.read_texts(("text", "absent", "hash", "bomb"), 100)
    assert found == {"text": b"C1", "absent": None, "hash": None, "bomb": b"\x91" * 101}


async def test_user_without_read_permission_is_refused(server: Server) -> None:
    owner = aioredis.Redis(unix_socket_path=server.url[7:])
    await owner.execute_command("ACL", "SETUSER", "blind", "on", ">pw", "-@all", "+client|setinfo")
    await owner.aclose()
    async with open_foreign(f"unix://blind:pw@{server.url[7:]}") as foreign:
        with pytest.raises(Unavailable, match="refuses to read"):
            await foreign.read_texts(("text",), 100)
        with pytest.raises(Unavailable):
            async with foreign.listen(("*",)):
                pass


async def test_channel_messages_are_received_until_the_server_is_lost(server: Server) -> None:
    owner = aioredis.Redis(unix_socket_path=server.url[7:])
    async with (
        open_foreign(f"unix://reader:pw@{server.url[7:]}") as foreign,
        foreign.listen(("Oven:*:Temp",)) as messages,
        asyncio.timeout(30),
    ):
        assert await owner.publish("Oven:1:Temp", b"\xcb" + bytes(8)) == 1
        await owner.publish("Oven:1:Other", b"1")
        await owner.publish("Oven:2:Temp", b"2")
        assert [await anext(messages), await anext(messages)] == [
            ("Oven:1:Temp", b"\xcb" + bytes(8)),
            ("Oven:2:Temp", b"2"),
        ]
        await owner.aclose()
        await server.kill()
        with pytest.raises(Unavailable):
            await anext(messages)


def test_other_values_are_not_decoded_as_a_list() -> None:
    assert decode_list(b"\xff\xfe") is None
    assert decode_list(b"\x90") == []


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (exceptions.OutOfMemoryError("command not allowed"), OutOfMemory, "out of memory"),
        (exceptions.ReadOnlyError("You can't write"), Unavailable, "replica"),
        (exceptions.NoPermissionError("User has no permissions"), AccessDenied, "our user may not"),
        (exceptions.ConnectionError("reset"), Unavailable, "does not answer: reset"),
        (TimeoutError(), Unavailable, "no reply in time"),
        (exceptions.ResponseError("UNBLOCKED the stream key no longer exists"), Unavailable, "consumer group"),
        (exceptions.ResponseError("wrong type"), Defect, "refuses a command"),
    ],
)
def test_redis_py_errors_are_classified_like_replies(error: Exception, kind: type[EdgeError], text: str) -> None:
    with pytest.raises(EdgeError, match=text) as caught, translate_errors():
        raise error
    assert type(caught.value) is kind
