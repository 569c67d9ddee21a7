"""The clock of the store is that of its host; behind Sentinel it continues that of the former host."""

import time
from typing import cast

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.store.client import HighAvailability, Store
from edge.store.connection import CommandConnection, Endpoint
from edge.store.fence import Fence
from edge.store.generation import Generation, GenerationCheck
from edge.store.open_store import open_store
from edge.store.replication import Replication
from edge.store.sentinels import Primary, Sentinels
from edge.store.server_time import (
    ClockReading,
    difference_problem,
    end_clock_difference,
    jobs_clock_problem,
    read_server_clock,
    server_time,
)


class ConfirmedFence:
    """A fence whose majority confirms the primary."""

    reason = ""

    def require(self) -> None:
        """Accept."""


async def behind_sentinel(store: Store, clock_ms: int) -> Store:
    """Set a store as one whose generation says that the jobs' clock is ahead of the server's."""
    check = GenerationCheck(store.keys, Primary("10.0.0.1", 6379, 1))
    check.expected = Generation("first", 1, clock_ms, 1)
    replication = Replication(CommandConnection(Endpoint()), store.keys.replication_mark(), (), least=0)
    store.ha = HighAvailability(cast("Sentinels", None), cast("Fence", ConfirmedFence()), check, replication)
    await store.execute("HSET", store.keys.generation(), "id", "first", "epoch", 1, "clock", clock_ms)
    return store


async def test_store_on_this_host_has_the_host_time(store: Store) -> None:
    before = now_ms()
    assert before - 1 <= await server_time(store) <= now_ms() + 1
    assert (await read_server_clock(store)).ahead_ms == 0


async def test_clock_of_a_gateway_that_is_behind_is_reported(store: Store) -> None:
    reading = await read_server_clock(store, lambda: time.time_ns() - 60_000_000_000)
    assert 59_000 < reading.ahead_ms < 61_000
    assert "60.0 s ahead of that of this machine" in str(difference_problem(reading.ahead_ms))


@pytest.mark.parametrize(
    ("server", "taken", "wall", "ahead_ms"),
    [
        (5_000_000_000, 0, 3_000_000_000, 2000),
        (3_000_000_000, 0, 5_000_000_000, -2000),
        (5_000_000_000, 4_000_000_000, 3_000_000_000, 0),
        (5_000_000_000, 3_999_999_998, 3_000_000_000, 2000),
    ],
    ids=["ahead", "behind", "explained by the duration", "more than the duration explains"],
)
def test_difference_beyond_the_duration_of_the_request_counts(
    server: int, taken: int, wall: int, ahead_ms: int
) -> None:
    assert ClockReading(server, taken, wall).ahead_ms == ahead_ms


@pytest.mark.parametrize(
    ("ahead_ms", "is_problem"),
    [(0, False), (1000, False), (-1000, False), (1001, True), (-1001, True)],
)
def test_difference_above_a_second_is_a_problem(ahead_ms: int, *, is_problem: bool) -> None:
    assert bool(difference_problem(ahead_ms)) is is_problem
    assert bool(jobs_clock_problem(ahead_ms)) is is_problem


@pytest.mark.parametrize("clock_ms", [60_000, -60_000])
async def test_time_of_the_store_does_not_jump_with_a_failover(store: Store, clock_ms: int) -> None:
    """The new host is a minute behind, or ahead: the difference is in the generation."""
    assert abs(await server_time(await behind_sentinel(store, clock_ms)) - (now_ms() + clock_ms)) < 1000


async def test_difference_of_the_clocks_ends_for_all_gateways(store: Store) -> None:
    await behind_sentinel(store, 60_000)
    await store.execute("SADD", store.keys.sfc_active_jobs(), "J1")
    assert not await end_clock_difference(store)
    await store.execute("DEL", store.keys.sfc_active_jobs())
    assert await end_clock_difference(store)
    await read_server_clock(store)
    assert store.clock_ms == 0
    assert abs(await server_time(store) - now_ms()) < 1000
    assert await store.execute("HGET", store.keys.generation(), "clock") == "0"


async def test_difference_of_a_later_failover_stays(redis: RedisSettings, store: Store) -> None:
    await behind_sentinel(store, 60_000)
    await store.execute("HSET", store.keys.generation(), "id", "second", "clock", 7_000)
    with pytest.raises(Unavailable, match="another generation"):
        await end_clock_difference(store)
    assert store.over.is_set()
    async with open_store(redis, None) as another:
        assert await another.execute("HGET", store.keys.generation(), "clock") == "7000"
