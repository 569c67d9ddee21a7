"""Opens and checks Redis: TCP, Unix socket, TLS, Sentinel, or the embedded server."""

import contextlib
import functools
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, unquote, urlsplit

import structlog

from edge.config import RedisSettings, password_of
from edge.errors import SettingsError, Unavailable
from edge.store.blocking_connections import BlockingConnections
from edge.store.client import MAX_BLOCK_MS, TIMEOUT_S, Store
from edge.store.commit import join, operation
from edge.store.connection import CommandConnection, Endpoint, Locate
from edge.store.errors import AccessDenied
from edge.store.keys import Keys
from edge.store.prefix_check import check_prefix
from edge.store.server_check import check_server

logger = structlog.get_logger(__name__)


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
            # Imported only for such a store.
            from edge.store.embedded import embedded_server, running_server  # noqa: PLC0415

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
    locate = _locator(stack, settings, url)
    connection = CommandConnection(locate)
    stack.callback(connection.close)
    blocking = BlockingConnections(locate, TIMEOUT_S + MAX_BLOCK_MS / 1000)
    stack.callback(blocking.close)
    keys = Keys(settings.prefix, host_streams=settings.streams == "all")
    return Store(connection, blocking, functools.partial(_subscribe, settings, url), keys, consumer)


def _locator(stack: contextlib.AsyncExitStack, settings: RedisSettings, url: str) -> Locate:
    if not url.startswith(("redis:", "unix:")):
        # Imported only for an address with TLS or Sentinel.
        from edge.store import redis_py  # noqa: PLC0415

        client = redis_py.client(settings, url)
        stack.push_async_callback(client.aclose)
        return functools.partial(redis_py.locate, client)
    endpoint = endpoint_of(url, password_of(settings))

    async def locate() -> Endpoint:
        return endpoint

    return locate


def endpoint_of(url: str, password: str | None) -> Endpoint:
    """Return where an address of a Unix socket or TCP leads; a password of the settings precedes that of the address.

    The query may name `db`, `username`, `password` and `client_name`, as with redis-py; other names have no effect.
    """
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    number = query.get("db", "" if parts.scheme == "unix" else unquote(parts.path).strip("/"))
    return Endpoint(
        path=unquote(parts.path) if parts.scheme == "unix" else "",
        host=unquote(parts.hostname or "localhost"),
        port=parts.port or 6379,
        username=unquote(parts.username or "") or query.get("username", ""),
        password=password or unquote(parts.password or "") or query.get("password", ""),
        database=int(number) if number.isdecimal() else 0,
        client_name=query.get("client_name", ""),
    )


@contextlib.asynccontextmanager
async def _subscribe(settings: RedisSettings, url: str, channel: str) -> AsyncIterator[AsyncIterator[str]]:
    # Imported only for a recorder.
    from edge.store import redis_py  # noqa: PLC0415

    async with redis_py.subscribe(settings, url, channel) as messages:
        yield messages


async def has_running_server(settings: RedisSettings) -> bool:
    """Return whether the server runs without this process; an embedded one ends with the process that opened it."""
    directory = settings.url.removeprefix("embedded:")
    if directory in {settings.url, ""}:
        return True
    # Imported only for such a store.
    from edge.store.embedded import running_server  # noqa: PLC0415

    return await running_server(directory) is not None


def _shown(url: str) -> str:
    return re.sub(r"//[^/]*@", "//", url)
