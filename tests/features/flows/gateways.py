"""Gateways of a test that run flows, each with an outside whose answers the test decides."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.cycle import NodeStatus
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.engine import FlowEngine
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import Action, PublishMessage, Query, task_of
from edge.features.flows.plan import Plans
from edge.features.flows.runner import RunnerContext
from edge.features.flows.state import CycleRecord, FlowRecord, FlowState
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from tests.features.flows.documents import flow, node

DEADLINE_S = 60.0

CHAIN = flow(
    [
        node("read", "tag.latest", tag="t"),
        node("double", "expression", expr="input * 2"),
        node("send", "mqtt.publish", topic="x"),
    ],
    "read>double double>send",
    interval_seconds=0,
)
"""A node that reads, one that computes and one that acts; one cycle."""


class FakeOutside:
    """Answers 21 to every query, and records every action; `hold` keeps what is asked waiting until `release`."""

    def __init__(self) -> None:
        self.actions: list[tuple[str, Any]] = []
        self.asked: dict[str, int] = defaultdict(int)
        self.fail: Exception | None = None
        self._released = asyncio.Event()
        self._released.set()

    def hold(self) -> None:
        """Keep every query and action waiting."""
        self._released.clear()

    def release(self) -> None:
        """Answer what waits."""
        self._released.set()

    async def read(self, query: Query) -> Any:
        """Answer a query."""
        self.asked[type(query).__name__] += 1
        await self._released.wait()
        if self.fail:
            raise self.fail
        return 21

    async def act(self, action: Action, action_id: str) -> Any:
        """Record an action."""
        assert isinstance(action, PublishMessage)
        self.actions.append((task_of(action_id), action.value))
        await self._released.wait()
        if self.fail:
            raise self.fail
        return {"topic": action.topic}


REFUSED = NodeError("not allowed")
UNKNOWN = OutcomeUnknownError("the reply was lost")


class Plant:
    """A flow state with the gateways on it; `clock` is that of the store, moved by `step_ms`; gateways measure it."""

    def __init__(self, state: FlowState, plans: Plans | None = None) -> None:
        self.state = state
        self.step_ms = 0
        self.retry_pause_s = 0.0
        self.stop_within_s = 0.0
        self.alive: set[str] = set()
        self.use(plans or Plans())

    def use(self, plans: Plans, worker_wait_s: float = 300.0) -> None:
        """Use other node kinds."""
        self.plans = plans
        self.worker_wait_s = worker_wait_s
        self.service = FlowService(self.state, plans, self.clock)

    def clock(self) -> int:
        """Return the instant."""
        return now_ms() + self.step_ms

    @contextlib.asynccontextmanager
    async def gateway(self, name: str = "edge", outside: FakeOutside | None = None) -> AsyncIterator[FlowEngine]:
        """Run flows for the length of the block; at its end the gateway is gone, as after a kill."""
        measured = self.step_ms

        async def measure() -> None:
            nonlocal measured
            measured = self.step_ms

        context = RunnerContext(
            state=self.state,
            outside=outside or FakeOutside(),
            plans=self.plans,
            clock=lambda: now_ms() + measured,
            measure_clock=measure,
            owner=name,
            kept_cycles=100,
            retry_pause_s=self.retry_pause_s,
            worker_wait_s=self.worker_wait_s,
            stop_within_s=self.stop_within_s,
        )
        engine = FlowEngine(context, self._is_gone, look_every_s=0.01)
        self.alive.add(name)
        try:
            async with background_task(engine.run(), f"flows of {name}"):
                yield engine
        finally:
            self.alive.discard(name)

    async def _is_gone(self, owner: str) -> bool:
        return owner not in self.alive

    async def run(self, document: dict[str, Any]) -> None:
        """Register and start a flow."""
        assert isinstance(await self.service.put(document), FlowRecord)
        await self.service.start(document["id"])

    async def until(self, condition: Callable[[CycleRecord], object], flow_id: str = "flow") -> CycleRecord:
        """Wait until the last cycle of a flow meets a condition; return it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                flow_record = await self.service.load(flow_id)
                record = await self.service.load_cycle(flow_record)
                if record and condition(record):
                    return record
                await asyncio.sleep(0.002)

    async def until_flow(self, condition: Callable[[FlowRecord], object], flow_id: str = "flow") -> FlowRecord:
        """Wait until a flow meets a condition; return it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                flow_record = await self.service.load(flow_id)
                if condition(flow_record):
                    return flow_record
                await asyncio.sleep(0.002)

    async def ended(self, flow_id: str = "flow") -> CycleRecord:
        """Wait until the last cycle of a flow has ended."""
        return await self.until(lambda record: record.ended_at is not None, flow_id)

    async def at(self, node_id: str, status: NodeStatus = NodeStatus.RUNNING, flow_id: str = "flow") -> CycleRecord:
        """Wait until a node of the last cycle is in a state."""
        return await self.until(lambda record: record.cycle.tasks[node_id].status is status, flow_id)


def statuses(record: CycleRecord) -> dict[str, str]:
    """Return the state of each node."""
    return {node_id: task.status.value for node_id, task in record.cycle.tasks.items()}


def reasons(record: CycleRecord) -> dict[str, str]:
    """Return the reason of each node that has one."""
    return {node_id: str(task.reason) for node_id, task in record.cycle.tasks.items() if task.reason}
