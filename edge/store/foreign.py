"""Reads one key of a Redis that belongs to another system; nothing is ever written there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from edge.errors import Unavailable
from edge.store.errors import translate_errors

TIMEOUT_S: Final = 2.0
MAX_BYTES: Final = 1 << 20
MAX_MEMBERS: Final = 10_000


class ForeignRedis:
    """The read-only side of a Redis of another system."""

    def __init__(self, client: aioredis.Redis) -> None:
        self._client = client

    async def read_members(self, key: str) -> frozenset[str]:
        """Return the members at a key: a set, a list, or a text with a list in MessagePack or JSON.

        An absent key has none. Raises Unavailable when the server is gone, and for a value that is no list, is larger
        than 1 MiB or has more than 10,000 members.
        """
        with translate_errors():
            async with asyncio.timeout(TIMEOUT_S):
                return self._checked(key, await self._read(key))

    async def _read(self, key: str) -> Any:
        # Each command on its own: a transaction may be more than the user is allowed.
        match await self._client.execute_command("TYPE", key):
            case b"none":
                return ()
            case b"set" if await self._client.execute_command("SCARD", key) <= MAX_MEMBERS:
                return tuple(await self._client.execute_command("SMEMBERS", key))
            case b"list":
                return await self._client.execute_command("LRANGE", key, 0, MAX_MEMBERS)
            case b"string" if await self._client.execute_command("STRLEN", key) <= MAX_BYTES:
                return decode_list(await self._client.execute_command("GET", key) or b"\x90")
            case _:
                return None

    def _checked(self, key: str, found: Any) -> frozenset[str]:
        if not isinstance(found, list | tuple) or len(found) > MAX_MEMBERS:
            reason = f"the foreign key {key!r} holds no list, or more than {MAX_MEMBERS} members"
            raise Unavailable(reason, "Correct [mirror.<name>] key, or the system that writes it.")
        return frozenset(each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in found)


@contextlib.asynccontextmanager
async def open_foreign(url: str) -> AsyncIterator[ForeignRedis]:
    """Open a foreign Redis; it is connected at the first read, and again after each failure."""
    client = aioredis.Redis.from_url(
        url, retry=Retry(NoBackoff(), 0), socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S, max_connections=2
    )
    try:
        yield ForeignRedis(client)
    finally:
        await client.aclose()


def decode_list(payload: bytes) -> Any:
    """Return the content of a value in MessagePack, else JSON; None for anything else."""
    for decode in (msgspec.msgpack.decode, msgspec.json.decode):
        with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return decode(payload)
    return None
