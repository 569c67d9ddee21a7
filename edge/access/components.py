"""Registers this process, and sidecars that call it, as components in the store; detects a process of the same id."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Final

import structlog
from msgspec import Meta, Struct

from edge.access.instances import end_token, is_surely_dead
from edge.foundation.errors import Defect, Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import ENGLISH, Text, stated_in
from edge.model.instant import rfc3339
from edge.model.plant import Component, PluginState, PublicComponent, PublicPlugin
from edge.store import components
from edge.store.background import Defects, poll_store
from edge.store.client import Store
from edge.store.commit import join
from edge.store.components import KnownComponent
from edge.store.server_time import server_time

logger = structlog.get_logger(__name__)

HEARTBEAT_S = 15.0
_AWAY_AFTER_S = 3 * HEARTBEAT_S
_LEAVE_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.5


class Report(Struct, frozen=True):
    """How a component is now."""

    component: Component
    plugins: Sequence[PluginState] = ()


Describe = Callable[[], Awaitable[Report]]
Clock = Callable[[Store], Awaitable[int]]
"""Returns the present instant in milliseconds: that of the store, as the clocks of components may differ."""


def is_away(known: KnownComponent, now_ms: int) -> bool:
    """Return whether a component has ended, or sends no heartbeats."""
    return now_ms / 1000 - known.seen_s > _AWAY_AFTER_S or not known.token


def public_component(known: KnownComponent, now_ms: int, language: str = ENGLISH) -> PublicComponent:
    """Return the public form of a component at an instant of the store's clock, with texts in a language."""
    component = known.component
    return PublicComponent(
        id=component.id,
        kind=component.kind,
        version=component.version,
        host=component.host,
        pid=component.pid,
        labels=component.labels,
        scopes=component.scopes,
        started_at=rfc3339(component.started),
        seen_at=rfc3339(known.seen_s * 1000) if known.seen_s else None,
        away=is_away(known, now_ms),
        problems=stated_in(component.problems, language),
        jobs=component.jobs,
        alarms=component.alarms,
        certificate_expiry=component.certificate_expiry,
        drift=None if component.drift is None else stated_in(component.drift, language),
        plugins=tuple(
            PublicPlugin(name=plugin.name, kind=plugin.kind, state=plugin.state, problem=plugin.problem)
            for plugin in known.plugins
        ),
    )


class _Registration:
    """Writes heartbeats; the description only when it has changed: each write wears the flash."""

    def __init__(self, store: Store, id: str, token: str, describe: Describe, clock: Clock) -> None:
        self._store = store
        self._id = id
        self.token = token
        self._describe = describe
        self._clock = clock
        self._written: Report | None = None

    async def beat(self) -> None:
        """Write a heartbeat, remove components of long ago. Raises Refused when another process has the id."""
        holder = await components.load_holder(self._store, self._id)
        if holder is not None and holder.token != self.token:
            raise another_holder(self._id)
        before = self._written if holder else None  # without a holder the store was emptied
        report, keys, now_s = await self._describe(), self._store.keys, await self._clock(self._store) // 1000
        parts = [components.touch(keys, self._id, now_s)]
        if before is None:
            parts.append(components.take(keys, self._id, self.token))
        if before is None or report.component != before.component:
            parts.append(components.put(keys, report.component))
        if before is None or report.plugins != before.plugins:
            parts.append(components.put_plugins(keys, self._id, report.plugins))
        await self._store.commit_here(join(parts))
        self._written = report
        await components.remove_outdated(self._store, now_s)

    async def leave(self) -> None:
        """Release the id; the component stays in the list with its last heartbeat. Raises Unavailable."""
        holder = await components.load_holder(self._store, self._id)
        if holder is not None and holder.token == self.token:
            await self._store.execute("HDEL", self._store.keys.discovery_tokens(), self._id)


@asynccontextmanager
async def registered(
    store: Store,
    id: str,
    token: str,
    describe: Describe,
    *,
    heartbeat_s: float = HEARTBEAT_S,
    clock: Clock = server_time,
) -> AsyncIterator[None]:
    """Register a component for the length of the block.

    Raises Refused when another process of this id shows heartbeats; a former process that was killed is replaced.
    When another process takes the id during the block, Refused ends the block.
    """
    await _claim(store, id, token, heartbeat_s)
    registration = _Registration(store, id, token, describe, clock)
    async with _beating(store.defects, registration, registration.beat, heartbeat_s):
        yield


@asynccontextmanager
async def announced(
    store: Store,
    id: str,
    token: str,
    describe: Describe,
    *,
    holds_lease: Callable[[], bool],
    heartbeat_s: float = HEARTBEAT_S,
    clock: Clock = server_time,
) -> AsyncIterator[None]:
    """Announce a component whose id is protected by a lease: it shows heartbeats while it holds the lease.

    When it has lost its lease and another process works under the id, Refused ends the block: together they would take
    the MQTT connections from each other without end.
    """
    registration = _Registration(store, id, token, describe, clock)

    async def beat() -> None:
        holder = await components.load_holder(store, id)
        is_ours = holder is not None and holder.token == token
        if holds_lease():
            if not is_ours:
                await store.commit_here(components.take(store.keys, id, token))
            await registration.beat()
        elif holder is not None and not is_ours and not is_surely_dead(holder.token):
            raise another_holder(id)

    async with _beating(store.defects, registration, beat, heartbeat_s):
        yield


@asynccontextmanager
async def _beating(
    defects: Defects, registration: _Registration, beat: Callable[[], Awaitable[None]], heartbeat_s: float
) -> AsyncIterator[None]:
    try:
        async with background_task(poll_store(defects, "component", beat, heartbeat_s), "component"):
            yield
    finally:
        try:
            async with asyncio.timeout(_LEAVE_WITHIN_S):
                await registration.leave()
        except (Unavailable, Defect, TimeoutError):
            # It stays in the store, after a failover for instance: this process takes the id from there at once.
            end_token(registration.token)


def another_holder(id: str) -> Refused:
    """Return the error for an id that another process holds."""
    advice = "Stop the other one, or start this one under another name."
    return Refused("component", Text.of("another component of the name {id!r} works on this store", id=id), advice)


async def _claim(store: Store, id: str, token: str, heartbeat_s: float) -> None:
    """Claim the id; wait up to two heartbeats to see whether a holder of unknown fate still lives."""
    first: components.Holder | None = None
    until = time.monotonic() + 2 * heartbeat_s + 1
    while (holder := await components.claim(store, id, token)) is not None:
        if holder.token == token:
            return
        if is_surely_dead(holder.token) or (first == holder and time.monotonic() > until):
            await store.commit(components.take(store.keys, id, token))
            return
        if first is None:
            logger.info("waiting for a heartbeat of another component of this name", component=id)
            first = holder
        elif holder != first:
            raise another_holder(id)
        await asyncio.sleep(min(_LOOK_EVERY_S, heartbeat_s))


_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LIVES_S: Final = 3 * HEARTBEAT_S
MOST_SIDECARS: Final = 100
"""The most sidecars of a store: a program that may call can register under any name."""

_Short = Annotated[str, Meta(max_length=200)]


class SidecarReport(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sidecar says of itself; `token` is a random text of its start, `started` is in milliseconds."""

    id: str
    token: Annotated[str, Meta(min_length=8, max_length=200)]
    version: Annotated[str, Meta(max_length=64)] = ""
    started: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    host: _Short = ""
    problems: _Short = ""
    labels: Annotated[Mapping[Annotated[str, Meta(max_length=64)], _Short], Meta(max_length=16)] = {}


async def register_sidecar(store: Store, report: SidecarReport, now_s: int) -> float:
    """Register a sidecar, or write its heartbeat; return the seconds within which the next one is expected.

    Raises Refused when the name is invalid, another sidecar of this name shows heartbeats, a gateway or worker has
    it, or too many sidecars live.
    """
    if not _NAME.fullmatch(report.id):
        raise Refused(
            "component",
            Text.of("{report!r} is not a name of a component", report=report.id[:80]),
            "Use letters and digits.",
        )
    every = await components.load_all(store)
    known_component = every.get(report.id)
    is_other = known_component is not None and known_component.token not in {"", report.token}
    if known_component is not None and (
        known_component.component.kind != "sidecar" or (is_other and now_s - known_component.seen_s < _LIVES_S)
    ):
        raise another_holder(report.id)
    is_same = known_component is not None and known_component.token == report.token
    component = Component(
        id=report.id,
        kind="sidecar",
        version=report.version,
        started=report.started or (known_component.component.started if known_component and is_same else now_s * 1000),
        host=report.host,
        labels=dict(report.labels),
        problems=report.problems,
    )
    keys = store.keys
    gone = [] if known_component else _replaced(every, now_s)
    parts = [*([components.remove(keys, gone)] if gone else []), components.touch(keys, report.id, now_s)]
    if not is_same:
        parts.append(components.take(keys, report.id, report.token))
    if known_component is None or known_component.component != component:
        parts.append(components.put(keys, component))
    await store.commit(join(parts))
    return HEARTBEAT_S


def _replaced(every: Mapping[str, KnownComponent], now_s: int) -> list[str]:
    """Return the sidecar that makes room for a new one: the one silent for longest. Raises Refused when all live."""
    sidecars = {
        id: known_component.seen_s
        for id, known_component in every.items()
        if known_component.component.kind == "sidecar"
    }
    if len(sidecars) < MOST_SIDECARS:
        return []
    oldest = min(sidecars, key=sidecars.__getitem__)
    if now_s - sidecars[oldest] < _LIVES_S:
        advice = "Look at the list: edge fleet list"
        raise Refused("component", Text.of("{count} sidecars work on this store already", count=len(sidecars)), advice)
    return [oldest]
