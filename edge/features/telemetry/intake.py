"""Takes the entries of the stream: of the store, and of one without files, which may lose them with every restart."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.foundation.task_group import background_task
from edge.store import stream_of_samples as telemetry
from edge.store.background import restart_on_outage
from edge.store.client import Store, block_ms
from edge.store.commit import Commit
from edge.store.reads import Entry

_WAITING: Final = 20
"""Entries that wait for the processor; further ones stay in the store."""

logger = structlog.get_logger(__name__)


class TakenEntry(Struct, frozen=True):
    """An entry, the store that has it, and how often it was delivered if that is of interest."""

    entry: Entry
    source: Store
    deliveries: int = 0


async def _pending(store: Store, *, suspects: bool) -> AsyncGenerator[TakenEntry, None]:
    """Yield what this consumer took and did not acknowledge.

    With `suspects` their deliveries are counted: after a restart the first one may have ended the process before.
    """
    after = "0"
    while pending := await telemetry.read_pending(store, after):
        for entry in pending:
            after = entry.entry_id
            deliveries = await telemetry.count_delivery(store, entry.entry_id) if suspects else 0
            yield TakenEntry(entry, store, deliveries)


async def _become_consumer(store: Store) -> None:
    await telemetry.create_group(store)
    await telemetry.claim_from_others(store)


class Intake:
    """The entries of a store, and those of a volatile store where samples have one of their own."""

    def __init__(self, store: Store, volatile: Store | None, clock: Clock, retry_s: float) -> None:
        self._store = store
        self._volatile = volatile
        self._clock = clock
        self._retry_s = retry_s
        self._queue: VolatileIntake | None = None
        self._suspects = True
        self._claimed_at = clock()

    async def begin(self) -> None:
        """Claim what a former consumer of the durable store took. Raises Unavailable."""
        await _become_consumer(self._store)

    def pending(self) -> AsyncGenerator[TakenEntry, None]:
        """Yield what this consumer took from the durable store and did not acknowledge. It raises Unavailable."""
        return _pending(self._store, suspects=self._suspects)

    @contextlib.asynccontextmanager
    async def opened(self, within_ms: Callable[[], int]) -> AsyncIterator[AsyncIterator[list[TakenEntry]]]:
        """Provide new entries, none after `within_ms`. They raise Unavailable for the durable store only."""
        suspects, self._suspects = self._suspects, False
        if self._volatile is None:
            yield self._durable_entries(within_ms)
            return
        queue = self._queue = VolatileIntake(self._volatile, suspects=suspects)
        async with (
            background_task(queue.run(self._retry_s), "volatile samples"),
            contextlib.aclosing(take_either(queue, self._store, within_ms)) as taken,
        ):
            yield taken

    async def claimed_if_due(self) -> Sequence[TakenEntry]:
        """Claim what another consumer took and has not acknowledged for a minute, such as a foreign program."""
        if 0 <= self._clock() - self._claimed_at < telemetry.IDLE_MS:
            return ()
        self._claimed_at = self._clock()
        claimed = [TakenEntry(idle.entry, self._store, idle.deliveries) for idle in await _claim_idle(self._store)]
        if self._volatile is not None:
            # The queue of this store reports its outage.
            with contextlib.suppress(Unavailable):
                idle_entries = await _claim_idle(self._volatile)
                claimed += [TakenEntry(idle.entry, self._volatile, idle.deliveries) for idle in idle_entries]
        return claimed

    def is_durable(self, taken: TakenEntry) -> bool:
        """Return whether the durable store has an entry: it is acknowledged with its decision."""
        return taken.source is self._store

    def acknowledge(self, taken: Iterable[TakenEntry]) -> Commit:
        """Return the acknowledgement of the entries of the durable store, for the commit of their decision."""
        ids = [entry.entry.entry_id for entry in taken if self.is_durable(entry)]
        return telemetry.acknowledge(self._store.keys, ids) if ids else Commit()

    async def release(self, taken: Iterable[TakenEntry]) -> None:
        """Acknowledge the entries of the volatile store, after the commit of their decision."""
        ids = [entry.entry.entry_id for entry in taken if not self.is_durable(entry)]
        if self._queue and ids:
            await self._queue.release(ids)

    async def _durable_entries(self, within_ms: Callable[[], int]) -> AsyncIterator[list[TakenEntry]]:
        while True:
            yield [TakenEntry(entry, self._store) for entry in await telemetry.take_new(self._store, within_ms())]


async def _claim_idle(store: Store) -> list[telemetry.ClaimedEntry]:
    claimed = await telemetry.claim_idle(store)
    for idle in claimed:
        logger.warning("entry claimed", entry=idle.entry.entry_id, consumer=idle.consumer)
    return claimed


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
        await _become_consumer(self._store)
        async for taken_entry in _pending(self._store, suspects=self._suspects):
            await self.entries.put(taken_entry)
        self._suspects = False
        while True:
            for entry in await telemetry.take_new(self._store, block_ms()):
                await self.entries.put(TakenEntry(entry, self._store))


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
            taken_entries: list[TakenEntry] = []
            # Reads that complete while the caller works are taken in the next iteration.
            if reading.done():
                taken_entries += [TakenEntry(entry, store) for entry in reading.result()]
                reading = asyncio.ensure_future(telemetry.take_new(store, block_ms()))
            if getting.done():
                taken_entries.append(getting.result())
                getting = asyncio.ensure_future(intake.entries.get())
            yield taken_entries
    finally:
        reading.cancel()
        getting.cancel()
