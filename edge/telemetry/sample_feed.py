"""Follows the samples of the streams, for readers that need no consumer group."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from edge.rules.sample_lines import Sample
from edge.store import telemetry
from edge.store.client import Store
from edge.telemetry.batch import BatchError, decode_batch


async def follow_samples(stores: Sequence[Store]) -> AsyncGenerator[Sample, None]:
    """Yield every sample that is appended to one of the stores from now on, for ever.

    Raises Unavailable when a store is unavailable.
    """
    samples: asyncio.Queue[Sample] = asyncio.Queue(1)

    async def follow(store: Store) -> None:
        async for entry in telemetry.follow(store):
            try:
                batch, _ = decode_batch(entry.fields)
            except BatchError:
                continue
            for line in batch.lines:
                if isinstance(line, Sample):
                    await samples.put(line)

    tasks = [asyncio.create_task(follow(store), name="follow samples") for store in stores]
    try:
        while True:
            getting = asyncio.ensure_future(samples.get())
            done, _ = await asyncio.wait({getting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if getting not in done:
                getting.cancel()
                await done.pop()
            yield await getting
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
