"""Queries share one round trip, and each value fails for itself."""

import pytest

from edge.errors import EdgeError
from edge.store.client import Store
from edge.store.query import Query, query


async def reads_of(store: Store) -> int:
    """Return how many times the server has read from its clients, with this question."""
    return int((await store.execute("INFO", "stats"))["total_reads_processed"])


async def test_values_of_queries_come_in_their_order_from_one_round_trip(store: Store) -> None:
    key = store.keys.joborder
    await store.execute("SET", key("a"), "7")
    await store.execute("SADD", key("b"), "x", "y")
    two = Query((("GET", key("a")), ("SMEMBERS", key("b"))), lambda number, members: (int(number), sorted(members)))
    before = await reads_of(store)
    values = await store.fetch_all(query(int, "GET", key("a")), two, query(bool, "EXISTS", key("c")))
    assert await reads_of(store) - before == 2  # the queries, and the question itself
    assert list(values) == [7, (7, ["x", "y"]), False]
    assert await store.fetch(two) == (7, ["x", "y"])


async def test_failed_query_raises_at_its_turn_only(store: Store) -> None:
    key = store.keys.joborder
    await store.execute("SET", key("a"), "text")
    values = await store.fetch_all(
        query(str, "GET", key("a")), query(int, "GET", key("a")), query(len, "SMEMBERS", key("a")), query(str, "PING")
    )
    assert next(values) == "text"
    with pytest.raises(ValueError, match="text"):
        next(values)
    values = await store.fetch_all(query(str, "GET", key("a")), query(len, "SMEMBERS", key("a")))
    assert next(values) == "text"
    with pytest.raises(EdgeError, match="WRONGTYPE"):
        next(values)
