"""The meter of the bench reads what a commit costs from the server."""

from edge.store.client import Store
from edge.store.commit import operation
from tests.bench.measure import Meter


async def test_meter_counts_the_trip_and_the_bytes_of_a_commit(store: Store) -> None:
    meter = Meter(store)
    await meter.start()
    await store.commit(operation("SET", store.keys.mode(), "x" * 1000))
    measured = await meter.since_start()
    # The readings themselves are trips, too.
    assert measured["trips"] >= 1
    assert measured["wall"] > 0
    assert measured.keys() == {"wall", "cpu", "trips", "aof"}
