"""Late samples and entries of foreign consumers: the history has the first, the processor claims the second."""

from edge.ports.sample_lines import Sample
from edge.store.client import Store
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
from tests.waiting import until_async


def temp(seconds: float, value: float) -> Sample:
    return Sample(BEGIN + round(seconds * 1000), "wrench.temp", value)


async def test_older_sample_does_not_override_a_newer_one(store: Store) -> None:
    """It is in the history only, as `edge rules test` sets it aside."""
    history: list[Sample] = []
    async with at_work(store, rules_of(HOT), TelemetryClock()) as processor:
        processor.sample_listeners.append(history.extend)
        await append(store, temp(10, 90))
        await append(store, temp(9, 20), arrived_at=BEGIN + 10_000)
        await until_drained(store)
    assert await kinds_of(store) == ["raised"]
    assert [(sample.at - BEGIN, sample.value) for sample in history] == [(10_000, 90), (9_000, 20)]


async def test_entry_of_a_foreign_consumer_is_claimed_after_a_minute(store: Store) -> None:
    clock = TelemetryClock()
    async with at_work(store, rules_of(HOT), clock):
        await append(store, temp(0, 20))
        await until_drained(store)
        # A program in the group takes an entry and never acknowledges it.
        key = store.keys.telemetry()
        entry = await store.execute("XADD", key, "*", "producer", "x", "number", "1", "at", str(BEGIN))
        await store.execute("XCLAIM", key, "rules", "foreign", 0, entry, "IDLE", 61_000, "FORCE", "JUSTID")
        clock.now += 61_000
        await append(store, temp(61, 21))
        await until_async(lambda: _has_no_pending(store))


async def _has_no_pending(store: Store) -> bool:
    return not await store.execute("XPENDING", store.keys.telemetry(), "rules", "-", "+", 10, "foreign")
