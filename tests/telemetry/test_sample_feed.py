"""The feed yields the samples that are appended while it is followed."""

import asyncio

from edge.rules.sample_lines import Occurrence, Sample
from edge.store.client import Store
from edge.telemetry.sample_feed import follow_samples
from tests.telemetry.plant import append


async def test_samples_are_followed_and_other_entries_skipped(store: Store) -> None:
    await append(store, Sample(1, "old", 1))
    feed = follow_samples([store])
    first = asyncio.ensure_future(anext(feed))
    while not first.done():
        await store.execute("XADD", store.keys.telemetry(), "*", "garbage", "1")
        await append(store, Occurrence(1, "x", None, None), Sample(2, "new", 2))
        await asyncio.sleep(0.01)
    assert await first == Sample(2, "new", 2)
    await feed.aclose()
