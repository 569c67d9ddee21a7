"""Values of a foreign Redis are decoded as plain JSON; an undecodable value fails the node with the reason."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
import redis.asyncio as aioredis

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import RedisValue
from edge.features.flows.ports.foreign_value import read_key
from edge.foundation.errors import Unavailable
from edge.model.payload import decode_payload
from edge.store.other_redis import MAX_BYTES, MAX_MEMBERS
from tests.store.servers import Server, own_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The server of another system."""
    directory: Path = tmp_path_factory.mktemp("foreign")
    async with own_server(directory) as running:
        owner = aioredis.Redis(unix_socket_path=running.url[7:])
        await owner.set("packed", msgspec.msgpack.encode({"speed": 3.5}))
        await owner.set("json", b'{"speed": 3.5}')
        await owner.set("number", b"85.2")
        await owner.set("digit", b"5")
        await owner.set("letter", b"A")
        await owner.set("text", "läuft".encode())
        await owner.set("bytes", b"\xff\xfe")
        await owner.set("bomb", b"\x91" * 100_000)
        await owner.set("large", b"x" * (MAX_BYTES + 1))
        await owner.sadd("set", "b", "a")
        await owner.rpush("list", "1", "b")
        await owner.rpush("long", *range(MAX_MEMBERS + 1))
        await owner.hset("hash", mapping={"speed": "3.5", "state": "on"})
        await owner.zadd("sorted", {"a": 1})
        await owner.aclose()
        yield running


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("packed", {"speed": 3.5}),
        ("json", {"speed": 3.5}),
        ("number", 85.2),
        ("digit", 5),
        ("letter", "A"),
        ("text", "läuft"),
        ("set", ["a", "b"]),
        ("list", [1, "b"]),
        ("hash", {"speed": 3.5, "state": "on"}),
        ("absent", None),
    ],
)
async def test_value_of_a_foreign_redis_is_read(server: Server, key: str, value: object) -> None:
    assert await read_key(RedisValue(server.url, key), "") == value


async def test_one_character_is_a_messagepack_integer_by_the_encoding(server: Server) -> None:
    """The value is 53, written as MessagePack: its byte is that of the digit 5."""
    assert await read_key(RedisValue(server.url, "digit", "msgpack"), "") == 53
    assert await read_key(RedisValue(server.url, "digit", "text"), "") == "5"
    with pytest.raises(NodeError, match="it is not JSON"):
        await read_key(RedisValue(server.url, "letter", "json"), "")


@pytest.mark.parametrize("key", ["large", "long", "sorted"])
async def test_value_that_is_too_large_fails_the_node(server: Server, key: str) -> None:
    with pytest.raises(NodeError, match="too large"):
        await read_key(RedisValue(server.url, key), "")


@pytest.mark.parametrize("key", ["bytes", "bomb"])
async def test_bytes_of_unknown_format_fail_the_node(server: Server, key: str) -> None:
    with pytest.raises(NodeError, match="neither JSON nor MessagePack nor UTF-8 text"):
        await read_key(RedisValue(server.url, key), "")


async def test_stopped_server_is_reported_as_unavailable() -> None:
    with pytest.raises(Unavailable):
        await read_key(RedisValue("redis://127.0.0.1:1", "key"), "")


@pytest.mark.parametrize("url", ["redis://127.0.0.1:port", "redis://127.0.0.1/db?what=1"])
async def test_invalid_url_fails_the_node(url: str) -> None:
    with pytest.raises((NodeError, Unavailable)):
        await read_key(RedisValue(url, "key"), "")


async def test_password_is_not_in_the_reason() -> None:
    with pytest.raises(Unavailable) as caught:
        await read_key(RedisValue("redis://user:geheim@127.0.0.1:1", "key"), "")
    assert "geheim" not in str(caught.value)


async def test_keys_that_are_not_text_become_text() -> None:
    assert msgspec.to_builtins(decode_payload(msgspec.msgpack.encode({1: "a"})), str_keys=True) == {"1": "a"}
