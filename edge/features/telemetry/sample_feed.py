"""Follows the samples of the streams, for readers that need no consumer group."""

from collections.abc import Callable, Sequence

from edge.foundation.task_group import TaskGroup
from edge.ports.batch import BatchError, decode_batch
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store


async def follow_samples(stores: Sequence[Store], show: Callable[[Sample], None]) -> None:
    """Call `show` with every sample that is appended to one of the stores, until cancelled.

    Raises an exception group with Unavailable when a store is unavailable.
    """
    async with TaskGroup() as tasks:
        for store in stores:
            tasks.create_task(_follow(store, show), name="follow samples")


async def _follow(store: Store, show: Callable[[Sample], None]) -> None:
    async for entry in telemetry.follow(store):
        try:
            batch, _ = decode_batch(entry.fields)
        except BatchError:
            continue
        for line in batch.lines:
            if isinstance(line, Sample):
                show(line)
