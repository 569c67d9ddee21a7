"""A commit of any size is written completely or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.store.client import Store
from edge.store.commit import (
    COMMIT_SHA,
    Absent,
    Commit,
    Committed,
    Fewer,
    Guard,
    Stale,
    at_revision,
    fields,
    join,
    operation,
    pack,
    run_commit,
    spread,
)
from edge.store.connection import CommandConnection, Endpoint
from tests.store.servers import own_server

Key = Callable[[str], str]


@pytest.fixture
def key(store: Store) -> Key:
    """How to name a key of this test."""
    return lambda name: f"{store.keys.prefix}:{name}"


def hashed(key: str, **texts: str) -> Commit:
    return spread("HSET", (key,), fields(texts))


def guarded(guard: Guard, commit: Commit) -> Commit:
    return join((Commit(guards=(guard,)), commit))


async def test_a_commit_writes_everything(store: Store, key: Key) -> None:
    commit = join((hashed(key("a"), rev="1", text="x"), operation("ZADD", key("z"), 1_700_000_000_001, "m")))
    assert await store.commit(commit) == Committed()
    assert await store.execute("HGETALL", key("a")) == {"rev": "1", "text": "x"}
    assert float(await store.execute("ZSCORE", key("z"), "m")) == 1_700_000_000_001


async def test_empty_commit_succeeds(store: Store) -> None:
    assert await store.commit(Commit()) == Committed()


async def test_stale_commit_writes_nothing(store: Store, key: Key) -> None:
    await store.commit(hashed(key("a"), rev="2"))
    commit = join((hashed(key("b"), rev="1"), Commit(guards=(at_revision(key("b"), 0), at_revision(key("a"), 1)))))
    assert await store.commit(commit) == Stale(key("a"))
    assert await store.execute("EXISTS", key("b")) == 0


async def test_second_commit_on_the_same_revision_is_stale(store: Store, key: Key) -> None:
    await store.commit(hashed(key("a"), rev="1"))
    commit = guarded(at_revision(key("a"), 1), hashed(key("a"), rev="2", by="one"))
    two = guarded(at_revision(key("a"), 1), hashed(key("a"), rev="2", by="two"))
    assert await store.commit(commit) == Committed()
    assert await store.commit(two) == Stale(key("a"))
    assert await store.execute("HGET", key("a"), "by") == "one"


async def test_a_document_that_must_not_exist_yet_has_revision_zero(store: Store, key: Key) -> None:
    new = guarded(at_revision(key("a"), 0), hashed(key("a"), rev="1"))
    assert await store.commit(new) == Committed()
    assert await store.commit(new) == Stale(key("a"))


async def test_a_key_that_must_be_absent_makes_the_commit_stale(store: Store, key: Key) -> None:
    mark = guarded(Absent(key("m")), operation("SET", key("m"), "seen"))
    assert await store.commit(mark) == Committed()
    assert await store.commit(mark) == Stale(key("m"))


async def test_full_set_refuses_new_members_and_accepts_existing_ones(store: Store, key: Key) -> None:
    def put(member: str) -> Commit:
        return guarded(Fewer(key("z"), member, 2), operation("ZADD", key("z"), 0, member))

    assert await store.commit(put("a")) == Committed()
    assert await store.commit(put("b")) == Committed()
    assert await store.commit(put("c")) == Stale(key("z"))
    assert await store.commit(put("b")) == Committed()


@pytest.mark.parametrize("count", [500, 5_000, 40_000])
async def test_a_document_of_many_fields_is_written_whole(store: Store, key: Key, count: int) -> None:
    written = {f"field {number}": str(number) for number in range(count)}
    assert await store.commit(spread("HSET", (key("a"),), fields(written))) == Committed()
    assert await store.execute("HGETALL", key("a")) == written
    await store.commit(spread("HDEL", (key("a"),), list(written)[1:]))
    assert await store.execute("HGETALL", key("a")) == {"field 0": "0"}


def test_empty_spread_produces_no_command() -> None:
    assert spread("SADD", ("key",), ()) == Commit()


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(texts=st.dictionaries(st.text(), st.text(), min_size=1))
async def test_any_text_is_read_as_it_was_written(store: Store, key: Key, texts: Mapping[str, str]) -> None:
    await store.commit(join((operation("DEL", key("a")), spread("HSET", (key("a"),), fields(texts)))))
    assert await store.execute("HGETALL", key("a")) == texts


@pytest.mark.parametrize("revision", [2**53, 2**60, 2**64, 10**30])
async def test_revisions_beyond_the_numbers_of_lua_are_compared_exactly(store: Store, key: Key, revision: int) -> None:
    await store.commit(hashed(key("a"), rev=str(revision + 1)))
    stale = guarded(at_revision(key("a"), revision), hashed(key("a"), by="one"))
    assert await store.commit(stale) == Stale(key("a"))
    fresh = guarded(at_revision(key("a"), revision + 1), hashed(key("a"), by="two"))
    assert await store.commit(fresh) == Committed()


async def test_script_is_known_after_the_first_commit(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = CommandConnection(Endpoint(path=server.url[7:]))
        for number in range(2):
            assert await run_commit(connection, pack(operation("SET", "word", str(number)))) == Committed()
            assert await connection.call(("SCRIPT", "EXISTS", COMMIT_SHA)) == [[1]]
        assert await connection.call(("GET", "word")) == ["1"]
        connection.close()
