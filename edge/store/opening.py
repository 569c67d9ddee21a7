"""Opens and checks Redis: TCP, Unix socket, TLS, Sentinel, or the embedded server."""

import contextlib
import functools
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote, urlsplit

import redis.asyncio as aioredis
import structlog
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from edge.config import RedisSettings, password_of
from edge.errors import SettingsError, Unavailable
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.connection import CommandConnection, Endpoint
from edge.store.embedded import embedded_server, running_server
from edge.store.errors import AccessDenied, translate_errors
from edge.store.keys import Keys
from edge.store.prefix_check import check_prefix
from edge.store.server_check import check_server

logger = structlog.get_logger(__name__)

_CONNECTIONS = 1000
"""Each connection reads one stream as long as the process runs."""


@contextlib.asynccontextmanager
async def open_store(settings: RedisSettings, consumer: str | None) -> AsyncIterator[Store]:
    """Connect and check the server; `consumer` names this instance in the work streams' consumer group.

    Without a consumer the caller is a visitor: it takes no work, an instance sends the commands of its decisions, and
    it shares the embedded server of another process, which needs a directory for that.

    Raises Unavailable when the server cannot be reached, SettingsError when its configuration does not suit the
    gateway.
    """
    if consumer is None and settings.url == "embedded:":
        raise SettingsError(
            ["[redis] url is `embedded:`: such a store lives and dies with one process"],
            "Name a Redis server, or a directory (`embedded:/dir`): a gateway and its visitors can share these.",
        )
    async with contextlib.AsyncExitStack() as stack:
        if settings.url.startswith("embedded:"):
            directory = settings.url.removeprefix("embedded:")
            running = await running_server(directory) if consumer is None else None
            path = running or await stack.enter_async_context(embedded_server(directory))
            url = f"unix://{path}"
        else:
            url = settings.url
        store = _connect(stack, settings, url, consumer)
        try:
            # A server that answers may still refuse to write: a replica, a full disk, a user without permission.
            probe = store.keys.cededupe("probe")
            await store.commit(join((operation("SET", probe, "", "PX", 1), operation("DEL", probe))))
            await check_prefix(store)
            await check_server(store, settings.durability)
        except AccessDenied as error:
            raise SettingsError([f"{error.message} (at {_shown(settings.url)})"], error.advice) from error
        except Unavailable as error:
            raise Unavailable(f"{error.message} (at {_shown(settings.url)})", error.advice) from error
        yield store


@contextlib.asynccontextmanager
async def open_unchecked(settings: RedisSettings, consumer: str) -> AsyncIterator[Store]:
    """Yield a store that connects at its first use, also after its server restarted; nothing of it is checked."""
    async with contextlib.AsyncExitStack() as stack:
        yield _connect(stack, settings, settings.url, consumer)


def _connect(stack: contextlib.AsyncExitStack, settings: RedisSettings, url: str, consumer: str | None) -> Store:
    blocking = _client(settings, url)
    stack.push_async_callback(blocking.aclose)
    connection = CommandConnection(functools.partial(_locate, blocking))
    stack.callback(connection.close)
    return Store(connection, blocking, Keys(settings.prefix, host_streams=settings.streams == "all"), consumer)


async def has_running_server(settings: RedisSettings) -> bool:
    """Return whether the server runs without this process; an embedded one ends with the process that opened it."""
    directory = settings.url.removeprefix("embedded:")
    return directory in {settings.url, ""} or await running_server(directory) is not None


def _shown(url: str) -> str:
    return re.sub(r"//[^/]*@", "//", url)


def _client(settings: RedisSettings, url: str) -> aioredis.Redis:
    # No `socket_timeout`: the client's own waits lose a cancellation that meets their end (Python 3.11). We time calls.
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
        return _sentinel_client(url, options | {"max_connections": _CONNECTIONS})
    pool = aioredis.BlockingConnectionPool.from_url(url, max_connections=_CONNECTIONS, timeout=None)
    # Options that we rely on override those of the address (`?protocol=2`).
    pool.connection_kwargs.update(options)
    return aioredis.Redis.from_pool(pool)


async def _locate(client: aioredis.Redis) -> Endpoint:
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


class _SentinelPool(SentinelConnectionPool, aioredis.BlockingConnectionPool):
    """Waits for a connection when all are in use, and closes those to the sentinels with its own."""

    async def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002  as it is there
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
    pool = _SentinelPool(parts.path.strip("/"), sentinel, timeout=None, **given)  # type: ignore[no-untyped-call]
    return aioredis.Redis.from_pool(pool)
