"""Queries share one round trip, and each value fails for itself."""

import pytest

from edge.foundation.errors import EdgeError
from edge.store.client import Store
from edge.store.query import StoreQuery, query
from tests.store.servers import reads_of


async def test_values_of_several_queries_come_from_one_round_trip(store: Store) -> None:
    key = store.keys.joborder
    await store.execute("SET", key("a"), "7")
    await store.execute("SADD", key("b"), "x", "y")
    number, exists = query(int, "GET", key("a")), query(bool, "EXISTS", key("c"))
    two = StoreQuery((("GET", key("a")), ("SMEMBERS", key("b"))), lambda first, members: (int(first), sorted(members)))
    before = await reads_of(store)
    replies = await store.fetch_all(number, two, exists)
    assert await reads_of(store) - before == 2  # one of them is INFO itself
    assert (replies.value(exists), replies.value(two), replies.value(number)) == (False, (7, ["x", "y"]), 7)
    assert await store.fetch(two) == (7, ["x", "y"])


async def test_error_of_one_query_leaves_the_values_of_the_others(store: Store) -> None:
    key = store.keys.joborder
    await store.execute("SET", key("a"), "text")
    refused, unreadable = query(len, "SMEMBERS", key("a")), query(int, "GET", key("a"))
    text = query(str, "GET", key("a"))
    replies = await store.fetch_all(refused, unreadable, text)
    with pytest.raises(EdgeError, match="WRONGTYPE"):
        replies.value(refused)
    with pytest.raises(ValueError, match="text"):
        replies.value(unreadable)
    assert replies.value(text) == "text"
