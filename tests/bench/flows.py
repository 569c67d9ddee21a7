"""Flows without a broker: what a node task costs, a hundred flows every second, and flows that wait."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from edge.config import RedisSettings
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.engine import FlowEngine
from edge.features.flows.nodes.outside import Action, Query
from edge.features.flows.plan import Plans
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.runner import RunnerContext
from edge.features.flows.state import CycleRecord, FlowRecord
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.bench.measure import Meter, Row, spread

NODES = 10
FLOWS = 100
_WARM_UP = 5
_DEADLINE_S = 300


class PromptOutside:
    """Answers every query and performs every action at once."""

    async def read(self, _query: Query) -> Any:
        """Answer a query."""
        return 21.5

    async def act(self, _action: Action, _action_id: str) -> Any:
        """Perform an action."""
        return {"topic": "bench"}


class _Flows:
    """A gateway that runs flows on a store."""

    def __init__(self, store: Store) -> None:
        self.state = RedisFlowState(store)
        plans = Plans()
        self.service = FlowService(self.state, plans, now_ms)
        context = RunnerContext(self.state, PromptOutside(), plans, now_ms, "bench", kept_cycles=1000)
        self.engine = FlowEngine(context, self._is_gone)

    async def _is_gone(self, _owner: str) -> bool:
        return False

    @property
    def ended(self) -> int:
        """Return the number of cycles that have ended."""
        return sum(self.engine.stats.cycles.values())

    async def start(self, document: dict[str, Any]) -> None:
        """Register and start a flow."""
        found = await self.service.put(document)
        assert isinstance(found, FlowRecord), found
        await self.service.start(document["id"])

    async def cycles(self) -> list[CycleRecord]:
        """Return all cycles in the store."""
        return [
            record
            for flow in await self.service.load_all()
            for number in range(flow.last_cycle + 1)
            if (record := await self.service.load_cycle(flow, number))
        ]


@contextlib.asynccontextmanager
async def _opened(aof: str) -> AsyncIterator[tuple[Store, _Flows]]:
    async with open_store(RedisSettings(url="embedded:"), "bench") as store:
        await store.execute("CONFIG SET", "appendfsync", aof)
        flows = _Flows(store)
        async with background_task(flows.engine.run(), "flows"):
            yield store, flows


def _chain(name: str, interval_s: float, kinds: Iterator[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    nodes = [
        {"id": f"n{number}", "kind": kind, "config": config}
        for number, (kind, config) in enumerate(itertools.islice(kinds, NODES))
    ]
    edges = list(itertools.pairwise(node["id"] for node in nodes))
    return {"id": name, "interval_seconds": interval_s, "nodes": nodes, "edges": edges}


def _acting(name: str, interval_s: float) -> dict[str, Any]:
    """Return a flow in which each node but the first acts: each is committed as begun before it acts."""
    first = ("constant", {"value": 1})
    return _chain(name, interval_s, itertools.chain([first], itertools.repeat(("mqtt.publish", {"topic": "bench"}))))


def _report(name: str, interval_s: float) -> dict[str, Any]:
    """Return a flow that reads, computes eight times and publishes."""
    computing = [("expression", {"expr": "input + 1"})] * (NODES - 2)
    return _chain(
        name, interval_s, iter([("tag.latest", {"tag": "t"}), *computing, ("mqtt.publish", {"topic": "bench"})])
    )


async def node_tasks(aof: str, least_tasks: int = 1000) -> Row:
    """Measure the cycles of one flow of acting nodes that begins the next cycle at once."""
    async with _opened(aof) as (store, flows):
        await flows.start(_acting("acts", 0.001))
        await _until(flows, _WARM_UP)
        meter, before = Meter(store), flows.ended
        await meter.start()
        await _until(flows, before + -(-least_tasks // NODES))
        tasks = (flows.ended - before) * NODES
        spent = await meter.since_start()
    return Row(
        "flow node",
        steps=NODES,
        conc=1,
        aof=aof,
        step_ms=round(spent["wall"] / tasks * 1000, 4),
        steps_per_s=round(tasks / spent["wall"]),
        cpu_s_per_1000_steps=round(spent["cpu"] / tasks * 1000, 4),
        round_trips_per_step=round(spent["trips"] / tasks, 2),
        aof_bytes_per_step=round(spent["aof"] / tasks),
    )


async def flows_every_second(aof: str, seconds: float) -> Row:
    """Measure a hundred flows of ten nodes each second: how late their cycles begin, and the CPU of this process."""
    async with _opened(aof) as (store, flows):
        for number in range(FLOWS):
            await flows.start(_report(f"f{number}", 1))
        await _until(flows, 2 * FLOWS)
        meter, before, began = Meter(store), flows.ended, now_ms()
        await meter.start()
        await asyncio.sleep(seconds)
        spent, tasks = await meter.since_start(), (flows.ended - before) * NODES
        late = [
            max(0, cycle.started_at - cycle.cycle.at) / 1000
            for cycle in await flows.cycles()
            if cycle.cycle.at >= began
        ]
    return Row(
        "flows 1/s",
        steps=NODES,
        conc=FLOWS,
        aof=aof,
        latency_ms=spread(late),
        steps_per_s=round(tasks / spent["wall"]),
        cpu_s_per_1000_steps=round(spent["cpu"] / tasks * 1000, 4),
        cpu_percent=round(spent["cpu"] / spent["wall"] * 100, 1),
        round_trips_per_step=round(spent["trips"] / tasks, 2),
        aof_bytes_per_step=round(spent["aof"] / tasks),
    )


async def waiting_flows(seconds: float) -> Row:
    """Measure a hundred flows whose next cycle is far away."""
    async with _opened("everysec") as (_, flows):
        for number in range(FLOWS):
            await flows.start({**_report(f"f{number}", 1), "interval_seconds": 31_536_000})
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        used = (time.process_time() - cpu) / (time.perf_counter() - began)
    return Row("flows waiting", conc=FLOWS, idle_cpu_percent=round(used * 100, 2))


async def _until(flows: _Flows, cycles: int) -> None:
    async with asyncio.timeout(_DEADLINE_S):
        while flows.ended < cycles:  # noqa: ASYNC110 - the counters of the engine have no event
            await asyncio.sleep(0.005)
