"""Samples and rules: the cost of a thousand samples a second, and what they do to the steps of jobs."""

import asyncio
import functools
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from edge.config import RedisSettings
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.rules.rule_form import parse_rules
from edge.features.telemetry.sample_queue import SampleQueue
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.foundation.ticks import Slices
from edge.ports.sample_lines import Sample
from edge.station.runs import Runs
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.bench import engine
from tests.bench.measure import Meter, Row, rss_kb

TAGS = 50
_NAMES = tuple(f"line.station{tag}.temperature" for tag in range(TAGS))
_STEPS = 4_000
_TICK_S = 0.02
_LATENCY_BUDGET_S = 0.1


def fifty_limits() -> tuple[Rule, ...]:
    """Return a rule with two limits for each tag; one sample in a thousand changes an alarm."""
    limits = {"high": {"at": 80, "severity": 500}, "high_high": {"at": 95, "severity": 800}}
    items = [
        {"id": f"r{n}", "kind": "limit", "tag": f"line.station{n}.temperature", "limits": limits, "hysteresis": 2}
        for n in range(TAGS)
    ]
    rules, faults = parse_rules(items)
    assert not faults, faults
    return rules


async def load(rate: int, seconds: float, *, volatile: bool = False) -> Row:
    """Measure samples alone at a rate: CPU, append-only file, latency of alarms, drops."""
    async with AsyncExitStack() as stack:
        store = await _store(stack)
        other = await _store(stack) if volatile else None
        queue, processor = await _open(stack, store, other)
        await asyncio.sleep(0.5)
        meter = Meter(store)
        await meter.start()
        await _offer(queue, rate, seconds)
        await _drain(queue, (store, other) if other else (store,))
        spent = await meter.since_start()
        counts = await telemetry.read_counters(store)
        total = processor.alarm_latency.cumulative()
        within = next((count for bound, count in total if bound >= _LATENCY_BUDGET_S), 0)
        findings = max((count for _, count in processor.alarm_latency.cumulative()), default=0)
        evaluated = counts["processed"]
        return Row(
            f"samples{' volatile' if volatile else ''}",
            conc=rate,
            aof="everysec",
            cpu_percent=round(spent["cpu"] / spent["wall"] * 100, 1),
            aof_bytes_per_step=round(spent["aof"] / evaluated, 1),
            latency_ms=None,
            rss_kb=rss_kb(),
            lost=rate * int(seconds) - evaluated - queue.dropped,
            dropped=queue.dropped,
            alarms_in_time=round(within / findings, 4) if findings else None,
        )


async def beside_jobs(rate: int) -> AsyncIterator[Row]:
    """Measure the steps of jobs without samples, and with so many a second in the same process and store."""
    alone = await engine.run_jobs("linear", 10, 1, "everysec", 0, _STEPS)
    yield replace(alone, scenario="jobs alone")

    @asynccontextmanager
    async def samples(store: Store, runs: Runs) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            queue, _ = await _open(stack, store, None, Slices(runs.is_busy))
            await stack.enter_async_context(background_task(_offer(queue, rate, 120.0), "samples offered"))
            yield

    loaded = await engine.run_jobs("linear", 10, 1, "everysec", 0, _STEPS, samples)
    slower = round(loaded.step_ms / alone.step_ms, 2) if loaded.step_ms and alone.step_ms else None
    yield replace(loaded, scenario=f"jobs with {rate} samples/s", floor_ratio=None, times_alone=slower)


async def _store(stack: AsyncExitStack) -> Store:
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
    return await stack.enter_async_context(open_store(RedisSettings(url=f"embedded:{directory}"), "bench"))


async def _open(
    stack: AsyncExitStack, store: Store, volatile: Store | None, slices: Slices | None = None
) -> tuple[SampleQueue, RuleProcessor]:
    queue = SampleQueue(volatile or store, now_ms, slices=slices)
    processor = RuleProcessor(store, fifty_limits(), now_ms, volatile=volatile, slices=slices)
    await stack.enter_async_context(background_task(processor.run(), "rules"))
    await stack.enter_async_context(background_task(queue.run(), "samples"))
    return queue, processor


@functools.cache
def _values() -> tuple[float, ...]:
    """Return the values to offer, tag by tag; chance at 10,000 samples a second takes more than what is measured."""
    chance, levels, found = random.Random(1), [78.0] * TAGS, []
    for number in range(100_000):
        tag = number % TAGS
        levels[tag] += chance.gauss(0, 0.3) + (78 - levels[tag]) * 0.01
        found.append(round(levels[tag], 2))
    return tuple(found)


async def _offer(queue: SampleQueue, rate: int, seconds: float) -> None:
    values, sent, began = _values(), 0, time.perf_counter()
    total = rate * int(seconds)
    while sent < total:
        due = min(total, int((time.perf_counter() - began) * rate))
        for number in range(sent, due):
            queue.put(Sample(now_ms(), _NAMES[number % TAGS], values[number % len(values)]))
        sent = due
        await asyncio.sleep(_TICK_S)


async def _drain(queue: SampleQueue, stores: tuple[Store, ...]) -> None:
    async with asyncio.timeout(120):
        while queue.waiting or any([(await telemetry.read_lengths(store)).lag for store in stores]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
