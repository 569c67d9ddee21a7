"""The meter of the bench reads what a commit costs from the server."""

from pathlib import Path

from edge.config import RedisSettings
from edge.store.commit import operation
from edge.store.embedded import embedded_server
from edge.store.open_store import open_store
from tests.bench.measure import Meter


async def test_meter_counts_the_trip_and_the_bytes_of_a_commit(tmp_path: Path) -> None:
    async with (
        embedded_server(str(tmp_path)) as socket,
        open_store(RedisSettings(url=f"unix://{socket}"), None) as store,
    ):
        meter = Meter(store)
        await meter.start()
        reading = await meter.since_start()
        await meter.start()
        await store.commit(operation("SET", store.keys.mode(), "x" * 1000))
        measured = await meter.since_start()
    assert measured["trips"] > reading["trips"]
    assert measured["aof"] > reading["aof"] + 1000
    assert measured["wall"] > 0
