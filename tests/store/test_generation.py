"""The generation of a store: written once for each failover, also by two instances at the same time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from edge.foundation.errors import Unavailable
from edge.store.commit import Commit, HashField, operation
from edge.store.connection import CommandConnection, Endpoint
from edge.store.generation import Generation, GenerationCheck, adopt_generation, load_generation, next_generation
from edge.store.keys import Keys
from edge.store.sentinels import Primary

MASTER = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n"
REPLICA = "# Replication\r\nrole:slave\r\nmaster_host:10.0.0.2\r\n"


@pytest.fixture
async def connection(valkey: str) -> AsyncIterator[CommandConnection]:
    opened = CommandConnection(Endpoint(path=valkey.removeprefix("unix://")))
    yield opened
    opened.close()


def primary(config_epoch: int) -> Primary:
    return Primary("10.0.0.1", 6379, config_epoch)


async def test_generation_lasts_until_a_later_failover(connection: CommandConnection, unique: str) -> None:
    keys = Keys(unique)
    first = await adopt_generation(connection, keys, primary(3))
    assert await adopt_generation(connection, keys, primary(3)) == first
    second = await adopt_generation(connection, keys, primary(4))
    assert second.id != first.id
    assert (await load_generation(connection, keys))[0] == second


async def test_two_instances_adopt_one_generation(connection: CommandConnection, unique: str) -> None:
    generations = await asyncio.gather(*(adopt_generation(connection, Keys(unique), primary(1)) for _ in range(20)))
    assert len(set(generations)) == 1


async def test_clock_of_the_jobs_runs_on_with_the_clock_of_another_host(
    connection: CommandConnection, unique: str
) -> None:
    keys = Keys(unique)
    assert (await adopt_generation(connection, keys, primary(1))).clock_ms == 0
    _, now = await load_generation(connection, keys)
    # The former host was a minute ahead.
    after = await adopt_generation(connection, keys, primary(2), lambda: now + 60_000)
    assert 59_000 < after.clock_ms <= 60_000
    # A process that has not followed the jobs' clock keeps the difference.
    assert (await adopt_generation(connection, keys, primary(3))).clock_ms == after.clock_ms


FIRST = Generation("first", 3, 0, 3)


@pytest.mark.parametrize(
    ("stored", "epoch", "jobs_ms", "expected"),
    [
        (None, 3, None, Generation("new", 3, 0, 0)),
        (None, 3, 160_000, Generation("new", 3, 60_000, 3)),
        (FIRST, 3, 160_000, FIRST),
        (FIRST, 0, None, Generation("new", 0, 0, 3)),
        (FIRST, 0, 160_000, Generation("new", 0, 60_000, 0)),
        (FIRST, 4, None, Generation("new", 4, 0, 3)),
        (FIRST, 4, 160_000, Generation("new", 4, 60_000, 4)),
        (FIRST, 4, 40_000, Generation("new", 4, -60_000, 4)),
        (FIRST, 4, 100_099, Generation("new", 4, 0, 4)),
        (Generation("other", 4, 0, 3), 4, 160_000, Generation("other", 4, 60_000, 4)),
        (Generation("other", 4, 60_000, 3), 4, 159_950, Generation("other", 4, 60_000, 4)),
        (Generation("other", 4, 60_000, 4), 4, 100_000, Generation("other", 4, 60_000, 4)),
    ],
    ids=[
        "first start",
        "first start, jobs' clock ahead",
        "no failover",
        "sentinels set up again",
        "sentinels set up again, jobs' clock ahead",
        "adopted without knowledge of the jobs' clock",
        "new host behind",
        "new host ahead",
        "same clock",
        "adopted by another without knowledge",
        "adopted by another, its difference is right",
        "measured by another",
    ],
)
def test_jobs_clock_runs_on_at_the_new_primary(
    stored: Generation | None, epoch: int, jobs_ms: int | None, expected: Generation
) -> None:
    """The clock of the server shows 100,000 ms."""
    assert next_generation(stored, epoch, "new", jobs_ms, 100_000) == expected


async def test_epochs_that_begin_again_make_a_new_generation(connection: CommandConnection, unique: str) -> None:
    """A person set up the sentinels again: the former count was higher, and no failover made a new generation."""
    keys = Keys(unique)
    before = await adopt_generation(connection, keys, primary(7))
    again = await adopt_generation(connection, keys, primary(0))
    after = await adopt_generation(connection, keys, primary(1))
    assert len({before.id, again.id, after.id}) == 3
    assert await adopt_generation(connection, keys, primary(1)) == after


async def test_gateway_corrects_the_clock_that_a_command_has_adopted(
    connection: CommandConnection, unique: str
) -> None:
    """A command is faster after a failover and has not followed the jobs' clock."""
    keys = Keys(unique)
    await adopt_generation(connection, keys, primary(1))
    adopted = await adopt_generation(connection, keys, primary(2))
    _, now = await load_generation(connection, keys)
    clocks = [lambda: now + 60_000, lambda: now + 60_020]
    corrected = await asyncio.gather(*(adopt_generation(connection, keys, primary(2), clock) for clock in clocks))
    assert corrected[0] == corrected[1]
    assert corrected[0].id == adopted.id
    assert 59_000 < corrected[0].clock_ms <= 60_020


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ([MASTER, "first"], ""),
        ([REPLICA, "first"], "10.0.0.1:6379 has become a replica"),
        ([MASTER, "second"], "10.0.0.1:6379 holds another generation of the store"),
        ([MASTER, None], "10.0.0.1:6379 holds another generation of the store"),
    ],
    ids=["ours", "replica", "other generation", "empty"],
)
async def test_connection_to_another_history_is_reported(
    connection: CommandConnection, unique: str, replies: list[object], reason: str
) -> None:
    check = GenerationCheck(Keys(unique), primary(1))
    reported: list[str] = []
    check.on_other = reported.append
    check.expected = None
    check.accept([MASTER, None])
    adopted = await adopt_generation(connection, Keys(unique), primary(1))
    check.expected = adopted
    given = [replies[0], adopted.id if replies[1] == "first" else replies[1]]
    if reason:
        with pytest.raises(Unavailable, match=reason):
            check.accept(given)
    else:
        check.accept(given)
    assert reported == ([reason] if reason else [])


async def test_commit_is_guarded_by_the_generation_first(connection: CommandConnection, unique: str) -> None:
    keys = Keys(unique)
    check = GenerationCheck(keys, primary(1))
    commit = Commit((HashField("hash", "name", None),), operation("SET", "a", "1").operations)
    assert check.guarded(commit) == commit
    check.expected = await adopt_generation(connection, keys, primary(1))
    guarded = check.guarded(commit)
    assert guarded.guards == (HashField(keys.generation(), "id", check.expected.id), *commit.guards)
    assert guarded.operations == commit.operations
