"""Uses redis-py for addresses with TLS or Sentinel, for channels, and for the Redis of another system.

The library takes 6 MB and a tenth of the start time: import this module only where it is used.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import redis.asyncio as aioredis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from edge.config import RedisSettings, password_of
from edge.errors import EdgeError, Unavailable
from edge.store.connection import Endpoint
from edge.store.errors import ADVICE_START, error_of_reply

_SUBSCRIBED_WITHIN_S = 5.0


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
        return Unavailable(f"Redis does not answer: {str(reply) or 'no reply in time'}", ADVICE_START)
    return error_of_reply(str(reply))


def client(settings: RedisSettings, url: str) -> aioredis.Redis:
    """Return a client for an address; it connects at its first use."""
    # No `socket_timeout`: in Python 3.11 a wait of redis-py can lose a cancellation as it ends. Callers set the time.
    options: dict[str, Any] = {
        "decode_responses": True,
        # Binary values of another application must not stop the readers of other values.
        "encoding_errors": "backslashreplace",
        "protocol": 3,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
    }
    if password := password_of(settings):
        options["password"] = password
    if url.startswith("redis+sentinel://"):
        return _sentinel_client(url, options)
    pool = aioredis.ConnectionPool.from_url(url)
    # Options that we rely on override those of the address (`?protocol=2`).
    pool.connection_kwargs.update(options)
    return aioredis.Redis.from_pool(pool)


async def locate(client: aioredis.Redis) -> Endpoint:
    """Return the present address of the server from the pool of redis-py; Sentinel names the primary."""
    pool = client.connection_pool
    connection = pool.make_connection()
    host, port = getattr(connection, "host", ""), getattr(connection, "port", 0)
    if isinstance(pool, SentinelConnectionPool):
        with translate_errors():
            host, port = await pool.get_master_address()
    return Endpoint(
        path=getattr(connection, "path", ""),
        host=host,
        port=int(port),
        tls=connection.ssl_context.get() if isinstance(connection, aioredis.SSLConnection) else None,
        username=connection.username or "",
        password=connection.password or "",
        database=int(connection.db or 0),
        client_name=connection.client_name or "",
    )


@contextlib.asynccontextmanager
async def subscribe(settings: RedisSettings, url: str, channel: str) -> AsyncIterator[AsyncIterator[str]]:
    """Subscribe to a channel for the length of the block; earlier messages are lost. Raises Unavailable."""
    subscriber = client(settings, url)
    try:
        async with subscriber.pubsub() as subscription:
            with translate_errors():
                async with asyncio.timeout(_SUBSCRIBED_WITHIN_S):
                    await subscription.subscribe(channel)
                    await subscription.get_message(timeout=None)
            yield _messages(subscription)
    finally:
        await subscriber.aclose()


async def _messages(subscription: aioredis.client.PubSub) -> AsyncIterator[str]:
    while True:
        with translate_errors():
            message = await subscription.get_message(timeout=None)
        if message and message["type"] == "message":
            yield message["data"]


class _SentinelPool(SentinelConnectionPool):
    """Closes the connections to the sentinels with its own."""

    async def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002 - as in redis-py
        await super().disconnect(inuse_connections)
        if inuse_connections:
            for sentinel in self.sentinel_manager.sentinels:
                await sentinel.aclose()


def _sentinel_client(url: str, options: dict[str, Any]) -> aioredis.Redis:
    """Follow `redis+sentinel://[user:password@]host:port[,host:port…]/service` to the primary of the service."""
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = map(unquote, login.partition(":"))
    named = {"username": username, "password": password}
    addresses = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in hosts.split(","))]
    sentinel = Sentinel(addresses, sentinel_kwargs={"protocol": 3})
    given = {key: value for key, value in named.items() if value} | options
    pool = _SentinelPool(parts.path.strip("/"), sentinel, **given)  # type: ignore[no-untyped-call]  # redis-py has no type
    return aioredis.Redis.from_pool(pool)
