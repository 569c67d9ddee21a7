"""Reads the state of a store: from each data node over a connection of its own, and from the views of the sentinels."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import EdgeError, SettingsError, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.store.client import Store
from edge.store.connection import Command, CommandConnection, Endpoint, settings_advice
from edge.store.embedded import running_server
from edge.store.fence import Fence, ask_fence, watched
from edge.store.keys import Keys
from edge.store.query import values_of
from edge.store.sentinels import Primary, Sentinels, SentinelView, agreed, endpoint_of, is_sentinel, sentinel_address_of
from edge.store.server_check import MemoryUsage
from edge.store.store_state import FenceState, GenerationState, NodeReport, StoreState, replicas_of, state_of

WITHIN_S: Final = 1.0
_INFO: Final = ("INFO", "server", "replication", "persistence", "memory")
_BACKOFF_S: Final = (0.05, 0.3)


class StoreObserver:
    """Reads the state of a store; `sentinels` and `fence` are those of a store behind Sentinel.

    The commands need no right beyond those of a gateway.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        generation_key: str,
        durability: str,
        sentinels: Sentinels | None = None,
        fence: Callable[[], Fence | None] = lambda: None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._endpoint = endpoint
        self._generation_key = generation_key
        self._durability = durability
        self._sentinels = sentinels
        self._fence = fence
        self._clock = clock
        self._nodes: dict[str, CommandConnection] = {}

    async def read(self) -> StoreState:
        """Return the state within about WITHIN_S; nodes that do not answer are part of it."""
        if self._sentinels is None:
            address = self._endpoint.path or f"{self._endpoint.host}:{self._endpoint.port}"
            report, _ = await self._ask(address, self._endpoint, with_generation=False)
            return state_of((), {address: report}, durability=self._durability)
        views = self._views(self._sentinels)
        primary = agreed(views)
        places = {str(primary): (primary.host, primary.port), **replicas_of(views)} if primary else {}
        for gone in self._nodes.keys() - places.keys():
            self._nodes.pop(gone).close()
        questions = (
            self._ask(name, replace(self._endpoint, host=host, port=port), with_generation=name == str(primary))
            for name, (host, port) in places.items()
        )
        fence, answers = await asyncio.gather(self._fence_state(primary), asyncio.gather(*questions))
        nodes = {report.address: report for report, _ in answers}
        generation = next((generation_state for _, generation_state in answers if generation_state), None)
        return state_of(
            self._sentinels.reports,
            nodes,
            durability=self._durability,
            service=self._sentinels.service,
            fence=fence,
            generation=generation,
        )

    def _views(self, sentinels: Sentinels) -> list[SentinelView]:
        return [report.view for report in sentinels.reports if report.view and not report.error]

    async def _fence_state(self, primary: Primary | None) -> FenceState:
        """Return the fence at the first instant at which it confirms: the silence of a data node outlasts that."""
        fence = self._fence()
        if fence is None:
            reason = (
                "no sentinel answers" if primary is None else Text.of("no majority confirms {primary}", primary=primary)
            )
            return FenceState(0.0, reason)
        if primary is not None and primary != fence.primary:
            return FenceState(
                0.0,
                Text.of("a failover has made {new} the primary instead of {former}", new=primary, former=fence.primary),
            )
        with contextlib.suppress(Unavailable):
            await fence.wait(WITHIN_S)
        return FenceState(fence.confirmed_s, fence.reason)

    async def _ask(
        self, name: str, endpoint: Endpoint, *, with_generation: bool
    ) -> tuple[NodeReport, GenerationState | None]:
        connection = self._nodes.setdefault(name, CommandConnection(endpoint, timeout=WITHIN_S, backoff=_BACKOFF_S))
        commands: list[Command] = [_INFO, ("TIME",)]
        if with_generation:
            commands.append(("HMGET", self._generation_key, "id", "epoch", "begun"))
        sent_at = self._clock()
        try:
            async with asyncio.timeout(WITHIN_S):
                info, (seconds, microseconds), *rest = values_of(commands, await connection.call(*commands))
        except TimeoutError:
            connection.close()
            return NodeReport(address=name, error=Text.of("no reply within {seconds:g} s", seconds=WITHIN_S)), None
        except EdgeError as error:
            return NodeReport(address=name, error=error.text, advice=settings_advice(error)), None
        ours = (sent_at + self._clock()) / 2000
        report = report_of(name, info, seconds + microseconds / 1e6 - ours)
        return report, _generation(*rest[0]) if rest else None

    def close(self) -> None:
        """Close the connections to the data nodes."""
        for connection in self._nodes.values():
            connection.close()


def _generation(id: str | None, epoch: str | None, begun: str | None) -> GenerationState | None:
    return GenerationState(id, int(epoch), int(begun) if begun else None) if id and epoch else None


def report_of(address: str, info: Mapping[str, str], clock_s: float) -> NodeReport:
    """Return the report of a data node by the fields of its INFO reply."""
    role = info["role"]
    is_replica = role != "master"
    product = ("Valkey", "valkey_version") if info.get("server_name") == "valkey" else ("Redis", "redis_version")
    return NodeReport(
        address=address,
        server=f"{product[0]} {info[product[1]]}",
        role=role,
        primary=f"{info['master_host']}:{info['master_port']}" if is_replica else "",
        is_linked=is_replica and info["master_link_status"] == "up",
        link_down_s=float(info.get("master_link_down_since_seconds", 0)) if is_replica else 0.0,
        offset=int(info["slave_repl_offset" if is_replica else "master_repl_offset"]),
        acknowledged={} if is_replica else dict(_acknowledged(info)),
        has_aof=_has_aof(info),
        clock_s=clock_s,
        memory=MemoryUsage(int(info["used_memory"]), int(info["maxmemory"])),
    )


def _has_aof(info: Mapping[str, str]) -> bool | None:
    """Return whether a data node keeps an append-only file.

    It is not known while the node copies the data of its primary: the server closes the file until it has loaded them.
    """
    if info["aof_enabled"] == "1":
        return True
    is_copying = "1" in {info.get(name) for name in ("loading", "async_loading", "master_sync_in_progress")}
    return None if is_copying else False


def _acknowledged(info: Mapping[str, str]) -> "list[tuple[str, tuple[int, float]]]":
    """Return offset and seconds since its confirmation of each connected replica, by address."""
    found: list[tuple[str, tuple[int, float]]] = []
    for number in range(int(info["connected_slaves"])):
        fields: dict[str, Any] = dict(text.split("=", 1) for text in info[f"slave{number}"].split(","))
        if fields["state"] == "online":
            found.append((f"{fields['ip']}:{fields['port']}", (int(fields["offset"]), float(fields["lag"]))))
    return found


def observer_of(store: Store, clock: Callable[[], int] = now_ms) -> StoreObserver:
    """Return an observer of an open store."""
    ha = store.ha
    fence = ha.fence if ha else None
    sentinels = ha.sentinels if ha else None
    return StoreObserver(store.endpoint, store.keys.generation(), _durability(store), sentinels, lambda: fence, clock)


def _durability(store: Store) -> str:
    """Return the mode of the settings by which the store was opened."""
    if store.ha is not None and store.ha.replication.is_required:
        return "replicated"
    return "required" if store.is_durable else "any"


@contextlib.asynccontextmanager
async def open_observer(settings: RedisSettings) -> AsyncIterator[StoreObserver]:
    """Open an observer for a person: it needs no majority and no primary, and reads nothing of the jobs.

    Raises SettingsError for a store that lives within the process of a gateway, Unavailable when the server of
    `embedded:/dir` does not run.
    """
    keys = Keys(settings.prefix)
    async with contextlib.AsyncExitStack() as stack:
        if is_sentinel(settings.url):
            address = sentinel_address_of(settings)
            sentinels = Sentinels(address)
            stack.callback(sentinels.close)
            fence: Fence | None = None
            with contextlib.suppress(Unavailable):
                fence = await ask_fence(sentinels.refresh)
                await stack.enter_async_context(watched(sentinels, fence))
            store_observer = StoreObserver(
                address.server, keys.generation(), settings.durability, sentinels, lambda: fence
            )
        else:
            store_observer = StoreObserver(await _endpoint(settings), keys.generation(), settings.durability)
        stack.callback(store_observer.close)
        yield store_observer


async def _endpoint(settings: RedisSettings) -> Endpoint:
    if not settings.url.startswith("embedded:"):
        return endpoint_of(settings, settings.url)
    directory = settings.url.removeprefix("embedded:")
    if not directory:
        raise SettingsError(
            ["[redis] url is `embedded:`: such a store lives and dies with one process"],
            "Name a Redis server, or a directory (`embedded:/dir`).",
        )
    if (path := await running_server(directory)) is None:
        raise Unavailable(
            Text.of("no server runs in {directory}", directory=directory), "Start the gateway: it runs this server."
        )
    return Endpoint(path=str(path))
