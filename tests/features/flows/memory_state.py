"""Stores flows in memory, for tests; without lifetimes."""

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from edge.features.flows.cycle import Cycle
from edge.features.flows.node_task import QueuedTask, ReceivedResult, TaskResult, WorkerProgress
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, KeptAnswer

_WAIT_S = 1.0


class MemoryFlowState:
    """The flow state of one process."""

    def __init__(self) -> None:
        self._flows: dict[str, FlowRecord] = {}
        self._cycles: dict[tuple[str, int], CycleRecord] = {}
        self._announced: list[str] = []
        self._signal = asyncio.Event()
        self.queued: list[QueuedTask] = []
        """Tasks for workers."""
        self._number = 0
        self._results: list[ReceivedResult] = []
        self._finished = asyncio.Event()

    async def load_flow(self, flow_id: str) -> FlowRecord | None:
        """Return a flow; None when there is none."""
        return self._flows.get(flow_id)

    async def flow_ids(self) -> list[str]:
        """Return the ids of all flows, sorted."""
        return sorted(self._flows)

    async def revisions(self) -> Mapping[str, int]:
        """Return the revision of each flow by its id."""
        return {flow_id: flow.revision for flow_id, flow in sorted(self._flows.items())}

    async def load_cycle(self, flow: FlowRecord, number: int) -> CycleRecord | None:
        """Return a cycle of a flow; None when it is not stored."""
        return self._cycles.get((flow.flow_id, number))

    async def commit(self, change: FlowChange) -> bool:
        """Write a change; return False without a write when a stored record has changed since it was read."""
        if not self._is_current(change):
            return False
        if change.cycle:
            cycle = change.cycle.after
            self._cycles[cycle.cycle.flow_id, cycle.cycle.number] = cycle
            for number in change.expired:
                self._cycles.pop((cycle.cycle.flow_id, number), None)
        if change.flow:
            self._flows[change.flow.after.flow_id] = change.flow.after
        if change.announced:
            self._announce(change)
        self.queued += change.queued
        self._results = [result for result in self._results if result.entry_id not in change.taken]
        return True

    def _is_current(self, change: FlowChange) -> bool:
        flow, cycle = change.flow, change.cycle
        if flow and _revision(self._flows.get(flow.after.flow_id)) != _revision(flow.before):
            return False
        if cycle is None:
            return True
        key = (cycle.after.cycle.flow_id, cycle.after.cycle.number)
        return _revision(self._cycles.get(key)) == _revision(cycle.before)

    def _announce(self, change: FlowChange) -> None:
        if change.flow:
            self._announced.append(change.flow.after.flow_id)
        elif change.cycle:
            self._announced.append(change.cycle.after.cycle.flow_id)
        self._signal.set()

    async def progress(self, cycle: Cycle) -> Mapping[str, WorkerProgress]:
        """Return an empty mapping: workers cannot access this memory."""
        return {}

    async def answers(self, cycle: Cycle) -> Mapping[str, KeptAnswer]:
        """Return an empty mapping: equipment belongs to gateways with a store."""
        return {}

    async def delete(self, flow: FlowRecord) -> bool:
        """Remove a flow with all its data; return False when its stored record has changed since it was read."""
        if _revision(self._flows.get(flow.flow_id)) != flow.revision:
            return False
        del self._flows[flow.flow_id]
        self._cycles = {key: cycle for key, cycle in self._cycles.items() if key[0] != flow.flow_id}
        self._announced.append(flow.flow_id)
        self._signal.set()
        return True

    async def due(self, now: int, limit: int) -> list[str]:
        """Return the flows whose next cycle is due, the longest overdue first."""
        found = [(flow.next_at, flow.flow_id) for flow in self._flows.values() if flow.next_at is not None]
        return [flow_id for at, flow_id in sorted(found) if at <= now][:limit]

    async def next_due(self) -> int | None:
        """Return the earliest instant at which a cycle is due."""
        return min((flow.next_at for flow in self._flows.values() if flow.next_at is not None), default=None)

    async def running(self) -> list[str]:
        """Return the ids of the flows that have a running cycle, sorted."""
        return sorted(flow.flow_id for flow in self._flows.values() if flow.in_cycle)

    async def announced(self, position: str) -> tuple[str, list[str]]:
        """Wait for announced changes after a position; return the next position and the flows."""
        begin = int(position) if position else len(self._announced)
        if begin == len(self._announced):
            self._signal.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await self._signal.wait()
        return str(len(self._announced)), self._announced[begin:]

    async def results(self, position: str) -> tuple[str, list[ReceivedResult]]:
        """Wait for results of workers after a position; return the next position and the results."""
        last = int(position or 0)
        received_results = [result for result in self._results if int(result.entry_id) > last]
        if not received_results:
            self._finished.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_S):
                    await self._finished.wait()
            received_results = [result for result in self._results if int(result.entry_id) > last]
        return (received_results[-1].entry_id if received_results else position), received_results

    def finish(self, result: TaskResult) -> None:
        """Add the result of a worker."""
        self._number += 1
        self._results.append(ReceivedResult(str(self._number), result))
        self._finished.set()


def _revision(record: msgspec.Struct | None) -> int:
    match record:
        case FlowRecord(revision=revision) | CycleRecord(revision=revision):
            return revision
        case _:
            return 0
