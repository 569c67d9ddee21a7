"""Opens and checks Redis: TCP, Unix socket, TLS, Sentinel, or the embedded server."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

import structlog
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.backoff import Backoff
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.store.background import restart_on_defect
from edge.store.blocking_connections import BlockingConnections, Subscriptions
from edge.store.client import MAX_BLOCK_MS, TIMEOUT_S, HighAvailability, Store
from edge.store.commit import join, operation
from edge.store.connection import AccessDenied, CommandConnection, Endpoint, WrongServer
from edge.store.embedded import embedded_server, running_server
from edge.store.fence import REPLACED_AFTER_S, Fence, ask_fence, quorum_advice, quorum_problem
from edge.store.generation import GenerationCheck, JobsClock, adopt_generation, load_generation
from edge.store.keys import Keys
from edge.store.replication import Replication
from edge.store.sentinels import ASK_EVERY_S, Sentinels, endpoint_of, is_sentinel, sentinel_address_of, shown
from edge.store.server_check import check_durability, check_prefix, check_version, lasting_problems

CONFIRMED_WITHIN_S: Final = 5.0
"""Time for a majority of the sentinels to learn of a failover that one of them has announced."""
_ASK_AGAIN_S: Final = 0.1
_successors: Final[dict[str, tuple[int, float]]] = {}
"""The config-epoch of the primary that ended the last store of an address, and that instant (time.monotonic)."""


@contextlib.asynccontextmanager
async def open_store(
    settings: RedisSettings, consumer: str | None, jobs_clock: JobsClock | None = None
) -> AsyncIterator[Store]:
    """Connect and check the server; `consumer` names this instance in the work streams' consumer group.

    Without a consumer the caller is a visitor: it takes no work, an instance sends the commands of its decisions, and
    it shares the embedded server of another process, which needs a directory for that. `jobs_clock` is the clock that
    the jobs have been following in this process, if it had the store open before.

    Raises Unavailable when the server cannot be reached, SettingsError when its configuration does not suit the
    gateway.
    """
    if consumer is None and settings.url == "embedded:":
        raise SettingsError(
            ["[redis] url is `embedded:`: such a store lives and dies with one process"],
            "Name a Redis server, or a directory (`embedded:/dir`): a gateway and its visitors can share these.",
        )
    async with contextlib.AsyncExitStack() as stack:
        try:
            store = await _opened(stack, settings, consumer, jobs_clock)
            store.is_durable = settings.durability != "any"
            # A server that answers may still refuse to write: a replica, a full disk, a user without permission.
            probe = store.keys.cededupe("probe")
            await store.commit_here(join((operation("SET", probe, "", "PX", 1), operation("DEL", probe))))
            await check_prefix(store)
            if store.is_durable and store.ha is None:
                await check_durability(store)
            await check_version(store)
        except (AccessDenied, WrongServer) as error:
            raise SettingsError(
                [Text.of("{reason} (at {url})", reason=error, url=shown(settings.url))], error.advice_text
            ) from error
        except Unavailable as error:
            raise Unavailable(
                Text.of("{reason} (at {url})", reason=error, url=shown(settings.url)), error.advice_text
            ) from error
        yield store


async def _opened(
    stack: contextlib.AsyncExitStack, settings: RedisSettings, consumer: str | None, jobs_clock: JobsClock | None
) -> Store:
    if is_sentinel(settings.url):
        return await _behind_sentinel(stack, settings, consumer, jobs_clock)
    if not settings.url.startswith("embedded:"):
        return _connect(stack, settings, endpoint_of(settings, settings.url), consumer)
    directory = settings.url.removeprefix("embedded:")
    running = await running_server(directory) if consumer is None else None
    path = running or await stack.enter_async_context(embedded_server(directory))
    return _connect(stack, settings, Endpoint(path=str(path)), consumer)


@contextlib.asynccontextmanager
async def open_unchecked(settings: RedisSettings, consumer: str) -> AsyncIterator[Store]:
    """Yield a store that connects at its first use, also after its server restarted; nothing of it is checked.

    Its address is that of a single server.
    """
    async with contextlib.AsyncExitStack() as stack:
        yield _connect(stack, settings, endpoint_of(settings, settings.url), consumer)


def _connect(
    stack: contextlib.AsyncExitStack, settings: RedisSettings, endpoint: Endpoint, consumer: str | None
) -> Store:
    connection = CommandConnection(endpoint)
    stack.callback(connection.close)
    blocking = BlockingConnections(endpoint, _BLOCKING_TIMEOUT_S)
    stack.callback(blocking.close)
    return Store(connection, blocking, Subscriptions(endpoint), _keys(settings), consumer)


_BLOCKING_TIMEOUT_S = TIMEOUT_S + MAX_BLOCK_MS / 1000


def _keys(settings: RedisSettings) -> Keys:
    return Keys(settings.prefix, host_streams=settings.streams == "all")


async def _behind_sentinel(
    stack: contextlib.AsyncExitStack, settings: RedisSettings, consumer: str | None, jobs_clock: JobsClock | None
) -> Store:
    """Find the primary, have it confirmed, adopt it, and watch over it until the stack closes.

    Raises Unavailable when the sentinels do not agree on a primary, or when it does not answer.
    """
    address = sentinel_address_of(settings)
    sentinels = Sentinels(address)
    stack.callback(sentinels.close)
    fence = await _fence_of_latest(sentinels, settings.url)
    primary = fence.primary
    keys, endpoint = _keys(settings), replace(address.server, host=primary.host, port=primary.port)
    check = GenerationCheck(keys, primary)
    connection = CommandConnection(endpoint, greeting=check)
    stack.callback(connection.close)
    blocking = BlockingConnections(endpoint, _BLOCKING_TIMEOUT_S, check)
    stack.callback(blocking.close)
    marking = CommandConnection(endpoint, greeting=check)
    stack.callback(marking.close)
    least = 1 if settings.durability == "replicated" else 0
    replication = Replication(marking, keys.replication_mark(), sentinels.views.values(), least)
    ha = HighAvailability(sentinels, fence, check, replication)
    store = Store(connection, blocking, Subscriptions(endpoint, check), keys, consumer, ha)
    check.on_other = store.end
    works = (
        ("sentinels", _watch(sentinels, fence)),
        ("primary", _end_when_replaced(store, fence, settings.url)),
        ("replication", replication.run),
    )
    for name, work in works:
        await stack.enter_async_context(_running(restart_on_defect(store.defects, name, work), name))
    await fence.wait(CONFIRMED_WITHIN_S)
    if consumer is not None:
        # A gateway opens it again after a failover, which has interrupted what all of them wrote.
        fence.note_break()
    is_durable = settings.durability != "any"
    if (await load_generation(connection, keys))[0] is None:
        await _refuse_unfit(store, sentinels, is_durable=is_durable)
    check.expected = await adopt_generation(connection, keys, primary, jobs_clock)
    store.keys = replace(keys, generation_id=check.expected.id)
    store.problems = await lasting_problems(store) if is_durable else ()
    return store


async def _fence_of_latest(sentinels: Sentinels, url: str) -> Fence:
    """Return the fence of the primary, not that of a failover before the one that ended the store in this process.

    Sentinels that have not heard of a failover yet name the former primary, and for a moment confirm it. But when they
    still name it after REPLACED_AFTER_S, that failover has come to nothing, or the sentinels were set up again.
    """
    until = time.monotonic() + CONFIRMED_WITHIN_S
    while True:
        fence = await ask_fence(sentinels.find_primary)
        epoch, since = _successors.get(url, (0, float("-inf")))
        if fence.primary.config_epoch >= epoch or time.monotonic() - since > REPLACED_AFTER_S:
            return fence
        if time.monotonic() >= until:
            reason = Text.of(
                "the sentinels that answer name {primary} still, the primary before the last failover",
                primary=fence.primary,
            )
            raise Unavailable(reason, "Start the other sentinels, or wait until these have heard of it.")
        await asyncio.sleep(_ASK_AGAIN_S)


async def _refuse_unfit(store: Store, sentinels: Sentinels, *, is_durable: bool) -> None:
    """Raise SettingsError for a line that may lose decisions, at its first use.

    Later the line continues on such a server, for example on a replica without append-only file, and reports it.
    """
    views = sentinels.views.values()
    if problem := quorum_problem(views):
        majority = max(view.majority for view in views)
        raise SettingsError([problem], quorum_advice(sentinels.service, majority))
    if is_durable:
        await check_durability(store)


@contextlib.asynccontextmanager
async def _running(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run work, which raises nothing, in a task for the length of the block."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


def _watch(sentinels: Sentinels, fence: Fence) -> Callable[[], Coroutine[Any, Any, None]]:
    async def watch() -> None:
        async with TaskGroup() as tasks:
            tasks.create_task(sentinels.watch(fence.take), name="ask sentinels")
            while True:
                fence.report()
                await asyncio.sleep(ASK_EVERY_S)

    return watch


def _end_when_replaced(store: Store, fence: Fence, url: str) -> Callable[[], Coroutine[Any, Any, None]]:
    async def end() -> None:
        await fence.replaced.wait()
        if fence.successor is not None:
            _successors[url] = (fence.successor.config_epoch, time.monotonic())
        store.end(f"a failover has made {fence.successor} the primary instead of {fence.primary}")

    return end


async def has_running_server(settings: RedisSettings) -> bool:
    """Return whether the server runs without this process; an embedded one ends with the process that opened it."""
    directory = settings.url.removeprefix("embedded:")
    if directory in {settings.url, ""}:
        return True
    return await running_server(directory) is not None


logger = structlog.get_logger(__name__)

REOPEN_S: Final = (0.1, 2.0)
"""The shortest and the longest delay between two attempts to open a store again."""


async def serve_stores(
    settings: RedisSettings, serve: Callable[[Store], Awaitable[None]], stopping: asyncio.Event
) -> None:
    """Open a store and serve with it until `serve` returns; when the store is over, open it again and serve again.

    While another one cannot be opened, retry until `stopping`. Raises SettingsError and Unavailable when the first one
    cannot be opened.

        await serve_stores(settings.redis, lambda store: FlowWorker(store, …).run(), stopping)
    """
    backoff: Backoff | None = None
    was_open = False
    while True:
        try:
            async with open_store(settings, consumer=None) as store:
                backoff, was_open = None, True
                if not await _is_over_first(store, serve):
                    return
        except (SettingsError, Unavailable) as error:
            # A store that was open may be lost again before the work has begun.
            if backoff is None and not (was_open and isinstance(error, Unavailable)):
                raise
            logger.warning("store not opened again, retrying", reason=error.message, advice=error.advice)
        backoff = backoff or Backoff(*REOPEN_S, stable=REOPEN_S[1])
        await backoff.pause(stopping)
        if stopping.is_set():
            return


async def _is_over_first(store: Store, serve: Callable[[Store], Awaitable[None]]) -> bool:
    """Return whether the store was over before `serve` had ended, which is cancelled then."""
    serving, over = asyncio.ensure_future(serve(store)), asyncio.ensure_future(store.over.wait())
    try:
        await asyncio.wait((serving, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        over.cancel()
        serving.cancel()
        await asyncio.wait((serving, over))
    if store.over.is_set():
        return True
    await serving
    return False
