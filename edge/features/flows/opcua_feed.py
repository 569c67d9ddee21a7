"""Publishes the flows of the store to OPC UA clients, and starts and stops flows for them."""

from collections.abc import Mapping
from typing import Final

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.flow_view import FlowView, ShownFlows
from edge.features.flows.state import CycleRecord, FlowRecord, FlowState
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.opcua.time_slices import Pacer
from edge.store.background import Defects, poll_store

LOOK_EVERY_S: Final = 5.0


class FlowFeed:
    """The flows of a store as OPC UA clients see them.

    The engine of this gateway reports its own cycles; what other gateways and commands change is read every few
    seconds.
    """

    def __init__(
        self, state: FlowState, service: FlowService, defects: Defects, look_every_s: float = LOOK_EVERY_S
    ) -> None:
        self._defects = defects
        self._state = state
        self._service = service
        self._look_every_s = look_every_s
        self._views: dict[str, FlowView] = {}
        self._revisions: dict[str, int] = {}
        self._nodes: ShownFlows | None = None

    async def start(self, flow_id: str) -> None:
        """Start a flow. Raises Refused."""
        self.show(await self._service.start(flow_id), None)

    async def stop(self, flow_id: str, reason: str | Text) -> None:
        """Stop a flow. Raises Refused."""
        self.show(await self._service.stop(flow_id, reason), None)

    def show(self, flow: FlowRecord, cycle: CycleRecord | None) -> None:
        """Show a flow that has changed, with its last cycle; without it the cycle is as it was."""
        if flow.revision < self._revisions.get(flow.flow_id, 0):
            return
        self._revisions[flow.flow_id] = flow.revision
        view = self._views[flow.flow_id] = flow_view(flow, cycle, self._views.get(flow.flow_id))
        if self._nodes is not None:
            self._nodes.show(flow.flow_id, view)

    async def run(self, nodes: ShownFlows) -> None:
        """Follow the flows of the store, until cancelled; `nodes` are those of a server that has just started."""
        pacer = Pacer()
        for flow_id, view in tuple(self._views.items()):
            nodes.show(flow_id, view)
            await pacer.step()
        self._nodes = nodes
        try:
            async with TaskGroup() as tasks:
                tasks.create_task(nodes.notify_subscribers(), name="opcua flow notifications")
                await poll_store(self._defects, "OPC UA flows", self._look, self._look_every_s)
        finally:
            self._nodes = None

    async def _look(self) -> None:
        """Read the flows that have changed since they were shown; hide those that were deleted."""
        found = await self._state.revisions()
        pacer = Pacer()
        for flow_id in self._revisions.keys() - found.keys():
            del self._revisions[flow_id], self._views[flow_id]
            if self._nodes is not None:
                self._nodes.hide(flow_id)
        for flow_id, revision in found.items():
            if self._revisions.get(flow_id) != revision and (flow := await self._state.load_flow(flow_id)):
                # A flow that was deleted and registered again begins with another revision.
                self._revisions.pop(flow_id, None)
                self.show(flow, await self._state.load_cycle(flow, flow.last_cycle) if flow.last_cycle >= 0 else None)
                await pacer.step()


def flow_view(flow: FlowRecord, cycle: CycleRecord | None, before: FlowView | None) -> FlowView:
    """Return the view of a flow; what the cycle does not show yet is as before."""
    view = before if before and before.last_cycle == flow.last_cycle else None
    state = cycle.cycle.status.value if cycle else view.cycle_state if view else ""
    duration_ms = before.duration_ms if before else None
    if cycle and cycle.ended_at is not None:
        duration_ms = max(0, cycle.ended_at - cycle.started_at)
    ended: Mapping[CycleStatus, int] = flow.ended
    return FlowView(
        state=flow.status.value,
        reason=str(flow.reason),
        last_cycle=flow.last_cycle,
        cycle_state=state,
        cycle_at=flow.last_at,
        duration_ms=duration_ms,
        next_at=flow.next_at,
        completed=ended.get(CycleStatus.COMPLETED, 0),
        failed=ended.get(CycleStatus.FAILED, 0),
        terminated=ended.get(CycleStatus.TERMINATED, 0),
        missed=flow.missed,
    )
