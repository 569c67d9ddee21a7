"""Reads one key of a Redis that belongs to another system; nothing is ever written there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec
import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError

from edge.foundation.errors import EdgeError, Unavailable
from edge.foundation.text import Text
from edge.model.payload import Encoding, decode_msgpack, decode_payload
from edge.store.connection import ADVICE_START, error_of_reply


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Raise the errors of redis-py as ours."""
    try:
        yield
    except (exceptions.RedisError, OSError) as error:
        raise _translate(error) from error


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.AuthenticationError, "WRONGPASS"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.MasterDownError, "MASTERDOWN"),
)
"""redis-py cuts the first word off these errors."""


def _translate(error: Exception) -> EdgeError:
    # The reply of the server to the greeting is wrapped in a connection error.
    reply = error.__cause__ if isinstance(error.__cause__, exceptions.AuthenticationError) else error
    for kind, code in _CODES:
        if isinstance(reply, kind):
            return error_of_reply(f"{code} {reply}")
    if isinstance(reply, exceptions.ConnectionError | exceptions.TimeoutError | exceptions.InvalidResponse | OSError):
        return Unavailable(
            Text.of("Redis does not answer: {reply}", reply=str(reply) or Text.of("no reply in time")), ADVICE_START
        )
    return error_of_reply(str(reply))


TIMEOUT_S: Final = 2.0
MAX_BYTES: Final = 1 << 20
MAX_MEMBERS: Final = 10_000


class UnreadableValueError(ValueError):
    """A value that is too large or of a type that is not read; the message says which."""


class ForeignRedis:
    """The read-only side of a Redis of another system."""

    def __init__(self, client: aioredis.Redis) -> None:
        self._client = client

    async def read_members(self, key: str) -> frozenset[str]:
        """Return the members at a key: a set, a list, or a text with a list in MessagePack or JSON.

        An absent key has none. Raises Unavailable when the server is unavailable, and for a value that is not a list,
        is larger than 1 MiB or has more than 10,000 members.
        """
        with _foreign_errors():
            async with asyncio.timeout(TIMEOUT_S):
                return self._checked(key, await self._read(key))

    async def read_value(self, key: str, encoding: Encoding = "auto") -> Any:
        """Return the value at a key, None for an absent one.

        A text is in the encoding; so are the members of a hash, list or set. Raises UnreadableValueError for
        another type and for a large value, UnreadablePayloadError for other bytes, Unavailable when the server is gone.
        """
        with _foreign_errors():
            async with asyncio.timeout(TIMEOUT_S):
                return await self._read_value(key, partial(decode_payload, encoding=encoding))

    async def _read_value(self, key: str, decode: Callable[[bytes], Any]) -> Any:
        ask: Callable[..., Awaitable[Any]] = self._client.execute_command
        match await ask("TYPE", key):
            case b"none":
                return None
            case b"hash" if await ask("HLEN", key) <= MAX_MEMBERS:
                found = await ask("HGETALL", key)
                return {_text(name): decode(value) for name, value in found.items()}
            case b"set" if await ask("SCARD", key) <= MAX_MEMBERS:
                return [decode(value) for value in sorted(await ask("SMEMBERS", key))]
            case b"list" if await ask("LLEN", key) <= MAX_MEMBERS:
                return [decode(value) for value in await ask("LRANGE", key, 0, -1)]
            case b"string" if await ask("STRLEN", key) <= MAX_BYTES:
                text = await ask("GET", key)
                return decode(text) if text else None
            case other:
                raise UnreadableValueError(f"a {other.decode()} that is too large, or of a type that is not read")

    async def read_texts(self, keys: tuple[str, ...], most: int) -> dict[str, bytes | None]:
        """Return the texts at keys, cut to one byte more than `most`; None for no text, or for another type.

        Raises Unavailable.
        """
        with _foreign_errors():
            async with asyncio.timeout(TIMEOUT_S):
                pipeline = self._client.pipeline(transaction=False)
                for key in keys:
                    pipeline.getrange(key, 0, most)
                found = await pipeline.execute(raise_on_error=False)
        refusal = next((value for value in found if isinstance(value, NoPermissionError)), None)
        if refusal is not None:
            raise Unavailable(
                Text.of("the foreign Redis refuses to read: {refusal}", refusal=refusal),
                "Permit its user GETRANGE of these keys.",
            )
        return {
            key: value if isinstance(value, bytes) and value else None for key, value in zip(keys, found, strict=True)
        }

    @contextlib.asynccontextmanager
    async def listen(self, patterns: tuple[str, ...]) -> AsyncIterator[AsyncIterator[tuple[str, bytes]]]:
        """Subscribe to patterns of channels for the length of the block; yield each message with its channel.

        A message that comes by several patterns comes several times. Raises Unavailable when the server is gone.
        """
        async with self._client.pubsub() as subscription:
            with _foreign_errors():
                async with asyncio.timeout(TIMEOUT_S):
                    await subscription.psubscribe(*patterns)
                    await subscription.get_message(timeout=None)
            yield _messages(subscription)

    async def _read(self, key: str) -> Any:
        # Send single commands: the user may not be allowed to use transactions.
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
            reason = Text.of(
                "the foreign key {key!r} holds no list, or more than {max_members} members",
                key=key,
                max_members=MAX_MEMBERS,
            )
            raise Unavailable(reason, "Correct [mirror.<name>] key, or the system that writes it.")
        return frozenset(_text(value) if isinstance(value, bytes) else str(value) for value in found)


def _text(raw: bytes) -> str:
    """Return a name or a member as text; different bytes stay different."""
    return raw.decode(errors="backslashreplace")


@contextlib.contextmanager
def _foreign_errors() -> Iterator[None]:
    """Translate errors of the library; the advice names the other system, not the store of the gateway."""
    try:
        with translate_errors():
            yield
    except Unavailable as error:
        if "[redis]" not in error.advice:
            raise
        advice = "Correct its url in the section of the source or mirror, or the rights of its user there."
        raise Unavailable(Text.of("the Redis of the other system: {reason}", reason=error), advice) from None


async def _messages(subscription: PubSub) -> AsyncIterator[tuple[str, bytes]]:
    while True:
        with _foreign_errors():
            message = await subscription.get_message(timeout=None)
        if message and message["type"] == "pmessage":
            yield _text(message["channel"]), message["data"]


@contextlib.asynccontextmanager
async def open_foreign(url: str) -> AsyncIterator[ForeignRedis]:
    """Open a foreign Redis; it is connected at the first read, and again after each failure."""
    # A subscription only waits: keepalive finds a peer that is gone without a word.
    keepalive = {} if url.startswith("unix:") else {"socket_keepalive": True}
    client = aioredis.Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        max_connections=3,
        **keepalive,
    )
    try:
        yield ForeignRedis(client)
    finally:
        await client.aclose()


def decode_list(payload: bytes) -> Any:
    """Return the content of a value in MessagePack, else JSON; None for anything else."""
    for decode in (decode_msgpack, msgspec.json.decode):
        with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return decode(payload)
    return None
