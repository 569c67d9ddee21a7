"""Follows the samples of the stream, for readers that need no consumer group."""

from collections.abc import AsyncGenerator

from edge.rules.sample_lines import Sample
from edge.store import telemetry
from edge.store.client import Store
from edge.telemetry.batch import BatchError, decode_batch


async def follow_samples(store: Store) -> AsyncGenerator[Sample, None]:
    """Yield every sample that is appended from now on, for ever. Raises Unavailable when the store is unavailable."""
    async for entry in telemetry.follow(store):
        try:
            batch, _ = decode_batch(entry.fields)
        except BatchError:
            continue
        for line in batch.lines:
            if isinstance(line, Sample):
                yield line
