"""Takes entries of the stream of a store without files; such a store may lose them with every restart."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.store import stream_of_samples as telemetry
from edge.store.background import restart_on_outage
from edge.store.client import Store, block_ms
from edge.store.reads import Entry

_WAITING: Final = 20
"""Entries that wait for the processor; further ones stay in the store."""


class TakenEntry(Struct, frozen=True):
    """An entry, the store that has it, and how often it was delivered if that is of interest."""

    entry: Entry
    source: Store
    deliveries: int = 0


class VolatileIntake:
    """Queues the entries of a store in order; entries that were not released are delivered again after an outage."""

    def __init__(self, store: Store, *, suspects: bool) -> None:
        """Take entries; with `suspects` their deliveries are counted, because one may have ended the process before."""
        self.entries: asyncio.Queue[TakenEntry] = asyncio.Queue(_WAITING)
        self._store = store
        self._suspects = suspects

    async def run(self, retry_s: float) -> None:
        """Take entries until cancelled; wait while the store is unavailable."""
        await restart_on_outage("volatile samples", self._follow, retry_s)

    async def release(self, entry_ids: Iterable[str]) -> None:
        """Acknowledge entries; if the store is unavailable, they are lost, or delivered again and recognised."""
        with contextlib.suppress(Unavailable):
            await self._store.commit(telemetry.acknowledge(self._store.keys, entry_ids))

    async def _follow(self) -> None:
        store = self._store
        await telemetry.create_group(store)
        await telemetry.claim_from_others(store)
        after = "0"
        while pending := await telemetry.read_pending(store, after):
            for entry in pending:
                after = entry.entry_id
                deliveries = await telemetry.count_delivery(store, entry.entry_id) if self._suspects else 0
                await self.entries.put(TakenEntry(entry, store, deliveries))
        self._suspects = False
        while True:
            for entry in await telemetry.take_new(store, block_ms()):
                await self.entries.put(TakenEntry(entry, store))


async def take_either(
    intake: VolatileIntake, store: Store, within_ms: Callable[[], int]
) -> AsyncGenerator[list[TakenEntry], None]:
    """Yield new entries of the durable or the volatile stream without end; yield an empty list after a timeout.

    Raises Unavailable for the durable store only.
    """
    # Tasks without a group: both waits continue while the caller works, and a generator must not keep a group open
    # over a yield (PEP 789).
    reading = asyncio.ensure_future(telemetry.take_new(store, block_ms()))
    getting = asyncio.ensure_future(intake.entries.get())
    try:
        while True:
            await asyncio.wait({reading, getting}, timeout=within_ms() / 1000, return_when=asyncio.FIRST_COMPLETED)
            taken: list[TakenEntry] = []
            # Reads that complete while the caller works are taken in the next iteration.
            if reading.done():
                taken += [TakenEntry(entry, store) for entry in reading.result()]
                reading = asyncio.ensure_future(telemetry.take_new(store, block_ms()))
            if getting.done():
                taken.append(getting.result())
                getting = asyncio.ensure_future(intake.entries.get())
            yield taken
    finally:
        reading.cancel()
        getting.cancel()
