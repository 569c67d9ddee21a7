"""Publishes the traffic of equipment to its recorders while there are any."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog

from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.task_group import TaskGroup, background_task
from edge.model.cloudevent import new_id
from edge.model.equipment_traffic import TrafficKind, TrafficRecord
from edge.store import traffic_channel
from edge.store.client import Store

logger = structlog.get_logger(__name__)

POLL_INTERVAL_S = 2.0
_MOST_WAITING, _MOST_BYTES = 200, 8 << 20
"""Records beyond these limits are counted and published as missed."""


class TrafficPublisher:
    """Publishes traffic to the recorders of each piece of equipment; without a recorder it does nothing."""

    def __init__(self, store: Store, names: Collection[str], poll_interval_s: float = POLL_INTERVAL_S) -> None:
        self._poll_interval_s = poll_interval_s
        self._store = store
        self._names = tuple(names)
        self._process = new_id()
        self._listening: Counter[str] = Counter()
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._bytes = 0
        self._missed: Counter[str] = Counter()
        self._state: dict[str, str] = {}

    def of(self, name: str) -> Callable[[TrafficKind, Any], None]:
        """Return the listener for the traffic of a piece of equipment."""
        return partial(self._take, name)

    async def look(self) -> None:
        """Update the recorders, and publish the present state to them."""
        try:
            counter = Counter(await traffic_channel.listeners(self._store, self._names))
        except Unavailable as error:
            logger.debug("recorders unknown", reason=error.message)
            counter = Counter()
        self._listening = counter
        # A recorder that knows the state ignores the record; a new one cannot be distinguished from another that left.
        for name in +counter:
            self._take(name, TrafficKind.BEGUN, {"process": self._process, "state": self._state.get(name)})

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        """Publish to recorders for the length of the block, from the first record on."""
        if not self._names:
            yield
            return
        await self.look()
        async with background_task(self.run(), "traffic of equipment"):
            yield

    async def run(self) -> None:
        """Publish until cancelled."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._keep_looking(), name="poll recorders")
            tasks.create_task(self._keep_publishing(), name="publish traffic")

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._poll_interval_s)
            await self.look()

    async def _keep_publishing(self) -> None:
        while True:
            name, passed = await self._waiting.get()
            self._bytes -= len(passed)
            try:
                if not await traffic_channel.publish(self._store, name, passed):
                    del self._listening[name]
            except Unavailable:
                # The recorders have lost the store as well.
                self._listening.clear()
            if missed := self._missed.pop(name, 0):
                self._put(name, TrafficKind.MISSED, missed)

    def _take(self, name: str, what: TrafficKind, data: Any) -> None:
        match what:
            case TrafficKind.CONNECTED:
                self._state[name] = "connected"
            case TrafficKind.LOST:
                self._state[name] = f"away: {data}"
            case _:
                pass
        if not self._listening[name]:
            return
        if self._waiting.qsize() >= _MOST_WAITING or self._bytes >= _MOST_BYTES:
            self._missed[name] += 1
        else:
            self._put(name, what, data)

    def _put(self, name: str, what: TrafficKind, data: Any) -> None:
        passed = traffic_channel.encode_record(
            TrafficRecord(at=now_ms(), gateway=self._store.consumer, what=what, data=data)
        )
        self._bytes += len(passed)
        self._waiting.put_nowait((name, passed))
