"""Samples of a second Redis without persistence are evaluated normally and lost without harm at a restart."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.features.telemetry.processor import VOLATILE_INTERVAL_MS
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_unchecked
from tests.features.telemetry.plant import (
    BEGIN,
    HOT,
    TelemetryClock,
    append,
    at_work,
    kinds_of,
    rules_of,
    until_drained,
)
from tests.features.telemetry.test_processor import temp, until_kinds
from tests.outside.servers import Store as Server
from tests.waiting import until_async

RATE = {"id": "fast", "kind": "rate", "tag": "*", "per_second": 5, "severity": 100}


class VolatileServer(Server):
    """A Redis that starts empty."""

    def start(self) -> None:
        """Start it without the data of its last run."""
        for file in self.directory.glob("appendonlydir/*"):
            file.unlink()
        super().start()


@pytest.fixture
def server() -> Iterator[VolatileServer]:
    # Not below tmp_path: a Unix socket has to have a short path.
    with tempfile.TemporaryDirectory(prefix="v-") as directory:
        volatile_server = VolatileServer(Path(directory) / "s")
        volatile_server.start()
        yield volatile_server
        volatile_server.kill()


@pytest_asyncio.fixture
async def volatile(server: VolatileServer, redis: RedisSettings) -> AsyncIterator[Store]:
    settings = RedisSettings(url=f"unix://{server.socket}", prefix=redis.prefix, durability="any")
    async with open_unchecked(settings, "edge") as store:
        yield store


def commits_of(store: Store) -> int:
    return max(count for _, count in store.commits.cumulative())


async def test_alarm_of_volatile_samples_is_stored_durably(store: Store, volatile: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock(), volatile):
        await append(volatile, temp(0, 90))
        await until_kinds(store, ["raised"])
        await append(store, temp(1, 96), producer="jobs")
        await until_kinds(store, ["raised", "escalated"])
        await append(volatile, temp(2, 60))
        await until_kinds(store, ["raised", "escalated", "cleared"])
        await until_drained(volatile)
    assert await volatile.execute("EXISTS", volatile.keys.alarms()) == 0


async def test_samples_without_an_alarm_share_a_commit(store: Store, volatile: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT, RATE), clock, volatile):
        await append(volatile, temp(0, 20))
        await until_drained(volatile)
        commits = commits_of(store)
        for second in range(1, 31):
            await append(volatile, temp(second, 20))
        await until_async(lambda: _is_taken(volatile, 30))
        assert commits_of(store) - commits <= 3
        await append(volatile, temp(31, 20))

        async def is_drained_later() -> bool:
            # Entries that are taken may be evaluated after the first interval: time passes until the last one is.
            clock.now += VOLATILE_INTERVAL_MS
            return await _is_taken(volatile, 0)

        await until_async(is_drained_later)
    counters = await telemetry.read_counters(store)
    assert counters["processed"] == 32


async def test_open_samples_are_evaluated_again_after_a_restart(store: Store, volatile: Store) -> None:
    rules, clock = rules_of(HOT | {"on_delay_seconds": 10}), TelemetryClock()
    async with at_work(store, rules, clock, volatile):
        await append(volatile, temp(0, 20))
        await until_drained(volatile)
        await append(volatile, temp(1, 90))
        await until_async(lambda: _is_taken(volatile, 1))
    async with at_work(store, rules, clock, volatile):
        await append(volatile, temp(12, 91))
        await until_kinds(store, ["raised"])
    assert (await telemetry.read_counters(store))["processed"] == 3


async def _is_taken(volatile: Store, pending: int) -> bool:
    groups = await volatile.execute("XINFO GROUPS", volatile.keys.telemetry())
    return int(groups[0]["lag"]) == 0 and int(groups[0]["pending"]) == pending


async def test_restart_of_the_volatile_store_loses_samples_only(
    store: Store, volatile: Store, server: VolatileServer
) -> None:
    clock = TelemetryClock()
    with capture_logs() as logs:
        async with at_work(store, rules_of(HOT), clock, volatile):
            await append(volatile, temp(0, 90))
            await until_kinds(store, ["raised"])
            server.kill()
            await append(store, temp(1, 96), producer="jobs")
            await until_kinds(store, ["raised", "escalated"])
            server.start()
            await append(volatile, temp(3, 60), producer="other")
            await until_kinds(store, ["raised", "escalated", "cleared"])
            await until_drained(volatile)
    events = [entry["event"] for entry in logs if entry["log_level"] in {"error", "critical"}]
    assert events == []
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["store unavailable, retrying"]
    assert await kinds_of(store) == ["raised", "escalated", "cleared"]


async def test_invalid_entry_of_the_volatile_store_becomes_a_dead_letter(store: Store, volatile: Store) -> None:
    async with at_work(store, rules_of(HOT), TelemetryClock(), volatile):
        await volatile.execute("XADD", volatile.keys.telemetry(), "*", "garbage", "1")
        await append(volatile, Sample(BEGIN, "wrench.temp", 90))
        await until_kinds(store, ["raised"])
        await until_drained(volatile)
    assert await store.execute("XLEN", store.keys.telemetry_dlq()) == 1
