"""Queries share one round trip, and each value fails for itself."""

import pytest

from edge.foundation.errors import EdgeError
from edge.store.client import Store
from edge.store.query import StoreQuery, query, shape
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


async def test_stream_entries_have_their_fields(store: Store, unique: str) -> None:
    entry_id = await store.execute("XADD", unique, "*", "job", "J1", "action", "start")
    expected = [(entry_id, {"job": "J1", "action": "start"})]
    assert await store.execute("XRANGE", unique, "-", "+") == expected
    assert await store.execute("XREVRANGE", unique, "+", "-") == expected
    assert await store.execute("XREAD", "STREAMS", unique, "0") == {unique: [expected]}
    assert await store.execute("XREAD", "STREAMS", unique, "$") == {}


async def test_deleted_entry_of_a_consumer_has_no_fields(store: Store, unique: str) -> None:
    entry_id = await store.execute("XADD", unique, "*", "job", "J1")
    await store.execute("XGROUP", "CREATE", unique, "g", "0")
    await store.execute("XREADGROUP", "GROUP", "g", "c", "STREAMS", unique, ">")
    await store.execute("XDEL", unique, entry_id)
    assert await store.execute("XREADGROUP", "GROUP", "g", "c", "STREAMS", unique, "0") == {unique: [[(entry_id, {})]]}


async def test_members_time_and_sections_have_types(store: Store, unique: str) -> None:
    await store.execute("SADD", unique, "a", "b")
    assert await store.execute("SMEMBERS", unique) == {"a", "b"}
    seconds, microseconds = await store.execute("TIME")
    assert isinstance(seconds, int)
    assert isinstance(microseconds, int)
    assert (await store.execute("INFO", "server"))["process_id"].isdecimal()
    assert await store.execute("HEXISTS", f"{unique}h", "f") is False


def test_fields_of_a_section_are_found_by_their_whole_names() -> None:
    info = shape("INFO", "# Memory\r\nused_memory:7\r\nused_memory_human:7B\r\n# Server\r\nos:a:b\r\n")
    assert dict(info) == {"used_memory": "7", "used_memory_human": "7B", "os": "a:b"}
    assert (len(info), info.get("memory"), "os" in info) == (3, None, True)


@pytest.mark.parametrize("reply", [None, "text", ["a"], {"a": "b"}])
def test_other_replies_stay_as_they_are(reply: object) -> None:
    assert shape("GET", reply) is reply
