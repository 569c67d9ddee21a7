"""Reads the clock of the store's host, by which leases of several machines are judged."""

from edge.store.client import Store


async def server_time(store: Store) -> int:
    """Return the present instant of the store in milliseconds since the epoch: of its host, steady over failovers."""
    seconds, microseconds = await store.execute("TIME")
    return int(seconds) * 1000 + int(microseconds) // 1000 + store.clock_ms
