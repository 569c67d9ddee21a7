"""Tells what passes at equipment to who records it, for as long as somebody does."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import structlog

from edge.errors import Unavailable
from edge.instant import now_ms
from edge.links.background_task import background_task
from edge.model.cloudevent import new_id
from edge.model.equipment_trace import TraceKind, TraceRecord
from edge.store import trace_channel
from edge.store.client import Store

logger = structlog.get_logger(__name__)

LOOK_EVERY_S = 2.0
_MOST_WAITING, _MOST_BYTES = 200, 8 << 20
"""What passes faster than it can be told is told as missed."""


class EquipmentTracer:
    """Looks who records these pieces of equipment, and tells them; what nobody records costs nothing."""

    def __init__(self, store: Store, names: Collection[str]) -> None:
        self._store = store
        self._names = tuple(names)
        self._process = new_id()
        self._listening: Counter[str] = Counter()
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._bytes = 0
        self._missed: Counter[str] = Counter()
        self._state: dict[str, str] = {}

    def of(self, name: str) -> Callable[[TraceKind, Any], None]:
        """Give what is to be told of what passes at a piece of equipment."""
        return partial(self._take, name)

    async def look(self) -> None:
        """Look who records, and greet them; a store that is away, or does not let us, is told of elsewhere."""
        try:
            found = Counter(await trace_channel.listeners(self._store, self._names))
        except Unavailable as error:
            logger.debug("nobody can record equipment now", reason=error.message)
            found = Counter()
        self._listening = found
        # Who has heard it before takes no notice; who is new cannot be told from another who left meanwhile.
        for name in +found:
            self._take(name, TraceKind.BEGUN, {"process": self._process, "state": self._state.get(name)})

    @asynccontextmanager
    async def tracing(self) -> AsyncIterator[None]:
        """Look and tell for the length of the block; who records already hears of it from the first."""
        if not self._names:
            yield
            return
        await self.look()
        async with background_task(self.run(), "overhearing"):
            yield

    async def run(self) -> None:
        """Look again and again, and tell, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_looking(), name="look who records equipment")
            tasks.create_task(self._keep_telling(), name="tell who records equipment")

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self.look()

    async def _keep_telling(self) -> None:
        while True:
            name, passed = await self._waiting.get()
            self._bytes -= len(passed)
            try:
                if not await trace_channel.publish(self._store, name, passed):
                    del self._listening[name]
            except Unavailable:
                # Who listened has lost the store as well.
                self._listening.clear()
            if missed := self._missed.pop(name, 0):
                self._put(name, TraceKind.MISSED, missed)

    def _take(self, name: str, what: TraceKind, data: Any) -> None:
        match what:
            case TraceKind.CONNECTED:
                self._state[name] = "connected"
            case TraceKind.LOST:
                self._state[name] = f"away: {data}"
            case _:
                pass
        if not self._listening[name]:
            return
        if self._waiting.qsize() >= _MOST_WAITING or self._bytes >= _MOST_BYTES:
            self._missed[name] += 1
        else:
            self._put(name, what, data)

    def _put(self, name: str, what: TraceKind, data: Any) -> None:
        passed = trace_channel.encode_record(
            TraceRecord(at=now_ms(), gateway=self._store.consumer, what=what, data=data)
        )
        self._bytes += len(passed)
        self._waiting.put_nowait((name, passed))
