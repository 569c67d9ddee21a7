"""The feed shows the samples that are appended to its stores while it runs."""

import asyncio

from edge.features.telemetry.sample_feed import follow_samples
from edge.links.background_task import background_task
from edge.ports.sample_lines import Occurrence, Sample
from edge.store.client import Store
from tests.features.telemetry.plant import append


async def test_new_samples_are_shown_and_other_entries_are_skipped(store: Store) -> None:
    await append(store, Sample(1, "old", 1))
    shown: list[Sample] = []
    async with background_task(follow_samples([store], shown.append), "feed"), asyncio.timeout(60):
        while not shown:
            await store.execute("XADD", store.keys.telemetry(), "*", "garbage", "1")
            await append(store, Occurrence(1, "x", None, None), Sample(2, "new", 2))
            await asyncio.sleep(0.01)
    assert set(map(repr, shown)) == {repr(Sample(2, "new", 2))}
