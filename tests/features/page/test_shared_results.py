"""Pages share the result of the same request, and no page gets a result from before the last change."""

import asyncio

import pytest

from edge.features.page.shared_results import SharedResults
from edge.foundation.errors import Refused


class Source:
    """Counts how often a result is made; a test sets the changes and the time."""

    def __init__(self) -> None:
        self.made = 0
        self.changes = 0
        self.now = 0.0
        self.results = SharedResults(lambda: self.changes, 0.1, clock=lambda: self.now, work=lambda: self.now)

    async def make(self) -> int:
        self.made += 1
        number = self.made
        await asyncio.sleep(0)
        return number

    async def get(self, key: str = "page") -> int:
        return await self.results.get(key, self.make)


async def test_simultaneous_requests_make_one_result() -> None:
    source = Source()
    assert await asyncio.gather(*(source.get() for _ in range(50))) == [1] * 50
    assert await source.get("other") == 2


async def test_result_from_before_a_change_is_not_used() -> None:
    source = Source()

    async def change_meanwhile() -> int:
        source.changes += 1
        return await source.make()

    assert await source.results.get("page", change_meanwhile) == 1
    assert await source.get() == 2
    assert await source.get() == 2
    source.now += 1.5
    assert await source.get() == 3


async def test_failure_is_not_cached() -> None:
    source = Source()

    async def fail() -> int:
        raise Refused("x", "x")

    with pytest.raises(Refused):
        await source.results.get("page", fail)
    assert await source.get() == 1


async def test_number_of_cached_results_is_limited() -> None:
    source = Source()
    for number in range(1000):
        await source.get(str(number))
    assert len(source.results._results) <= 64  # noqa: SLF001 - what is bounded


async def test_failures_leave_no_entries_in_the_cache() -> None:
    source = Source()

    async def refuse() -> int:
        await asyncio.sleep(0)
        raise Refused("unknown", "there is no such job")

    async def ask(key: str) -> None:
        with pytest.raises(Refused):
            await source.results.get(key, refuse)

    await asyncio.gather(*(ask(f"job {number}") for number in range(1000)))
    assert source.results._locks == {}  # noqa: SLF001 - what must not grow


async def test_results_are_computed_with_pauses() -> None:
    now, rests = 0.0, []

    async def rest(seconds: float) -> None:
        nonlocal now
        now += seconds
        rests.append(seconds)

    async def make() -> None:
        nonlocal now
        now += 0.01

    results = SharedResults(lambda: int(now * 1000), 0.1, clock=lambda: now, work=lambda: now, rest=rest)
    for number in range(100):
        await results.get(number % 3, make)
    busy = 100 * 0.01
    assert busy / now == pytest.approx(0.1, rel=0.02)
    assert len(rests) == 99


async def test_many_pages_share_the_results_of_a_job_that_changes_all_the_time() -> None:
    source = Source()
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)
        source.now += seconds
        await asyncio.sleep(0)

    results = SharedResults(
        lambda: source.changes, 1.0, lambda: 0.5, clock=lambda: source.now, work=lambda: source.now, rest=rest
    )
    assert await results.get("job", source.make) == 1
    source.now += 0.1
    source.changes += 1
    assert await asyncio.gather(*(results.get("job", source.make) for _ in range(10))) == [2] * 10
    assert rests == [pytest.approx(0.4)]
    source.changes += 1
    assert await results.get("other job", source.make) == 3, "each job has its own interval"
    assert len(rests) == 1
