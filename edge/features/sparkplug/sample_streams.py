"""The streams of samples that the edge node publishes: what it has read, and what the broker has confirmed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from edge.features.sparkplug import keys as sparkplug_keys
from edge.foundation.task_group import TaskGroup
from edge.ports.batch import BatchError, decode_batch
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.commit import Commit, HashField, operation
from edge.store.keys import Keys
from edge.store.reads import Entry

_BD_SEQ: Final = "bdseq"
_CURSOR: Final = "cursor:"


class NodeRecord(Struct, frozen=True):
    """The number of the last connection, None before the first; the position in each stream by its name."""

    bd_seq: int | None
    cursors: dict[str, str]


async def load(store: Store) -> NodeRecord:
    """Read what the edge node keeps."""
    found: dict[str, str] = await store.execute("HGETALL", sparkplug_keys.edge_node(store.keys))
    number = found.get(_BD_SEQ, "")
    cursors = {name.removeprefix(_CURSOR): text for name, text in found.items() if name.startswith(_CURSOR)}
    return NodeRecord(int(number) if number.isdecimal() else None, cursors)


def save_bd_seq(keys: Keys, number: int, former: int | None) -> Commit:
    """Write the number of a connection, which follows the former one."""
    guard = HashField(sparkplug_keys.edge_node(keys), _BD_SEQ, None if former is None else str(former))
    return Commit((guard,), (("HSET", sparkplug_keys.edge_node(keys), _BD_SEQ, number),))


def save_cursor(keys: Keys, stream: str, position: str) -> Commit:
    """Write up to which entry of a stream everything was published."""
    return operation("HSET", sparkplug_keys.edge_node(keys), f"{_CURSOR}{stream}", position)


_SLICE: Final = 10
"""Entries that are read at once: about a thousand samples."""


class SampleBatch(Struct, frozen=True):
    """The wanted samples of an entry of a stream, and its position there."""

    stream: str
    position: str
    samples: tuple[Sample, ...]


class SampleStreams:
    """The streams by name, each with the position up to which it was read."""

    def __init__(self, stores: Mapping[str, Store], wants: Callable[[str], bool]) -> None:
        self.read: dict[str, str] = {}
        """Up to where each stream was read."""
        self._stores = stores
        self.wants = wants

    async def read_up(self, learn: Callable[[Sample], object]) -> None:
        """Call `learn` with every sample between what was read and now."""
        for name, store in self._stores.items():
            end = await telemetry.newest(store)
            async for batch in self._between(name, self.read.get(name, ""), end):
                for sample in batch.samples:
                    learn(sample)
            self.read[name] = end

    async def stored(self, published: Mapping[str, str]) -> AsyncIterator[SampleBatch]:
        """Yield the batches between what was published and what was read, of each stream in its order."""
        for name, position in published.items():
            if name in self._stores:
                async for batch in self._between(name, position, self.read[name]):
                    yield batch

    async def follow(self, put: Callable[[SampleBatch], Awaitable[None]]) -> None:
        """Put every further batch, until cancelled. Raises an exception group with Unavailable."""
        async with TaskGroup() as tasks:
            for name in self._stores:
                tasks.create_task(self._follow(name, put), name=f"sparkplug samples of {name}")

    async def _follow(self, name: str, put: Callable[[SampleBatch], Awaitable[None]]) -> None:
        async for entry in telemetry.follow_after(self._stores[name], self.read[name]):
            await put(self._batch(name, entry))

    async def _between(self, name: str, position: str, end: str) -> AsyncIterator[SampleBatch]:
        while entries := await telemetry.read_after(self._stores[name], position, end, _SLICE):
            for entry in entries:
                position = entry.entry_id
                yield self._batch(name, entry)
            # Other work gets its turn between two slices.
            await asyncio.sleep(0)

    def _batch(self, name: str, entry: Entry) -> SampleBatch:
        try:
            batch, _ = decode_batch(entry.fields)
        except BatchError:
            return SampleBatch(name, entry.entry_id, ())
        own = self._stores[name].consumer
        # Other gateways of the store have the same tags.
        samples = (
            line
            for line in batch.lines
            if isinstance(line, Sample) and self.wants(line.tag) and line.gateway in {None, own}
        )
        return SampleBatch(name, entry.entry_id, tuple(samples))
