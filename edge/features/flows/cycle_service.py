"""Changes and describes flows as a person or the MES asks: put, start, stop, terminate, delete, show."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from edge.features.flows import decision
from edge.features.flows.cycle import ComponentStopped, Cycle, NodeTerminated, advance
from edge.features.flows.node_task import WorkerProgress
from edge.features.flows.plan import Fault, Plan, Plans, Rejected
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, FlowState, Written
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.foundation.text import Text

LONGEST_REASON: Final = 1000


class FlowService:
    """Changes flows in the store; the gateways on it act.

    Every call raises Unavailable when the store is gone, and Refused when it cannot be executed.
    """

    def __init__(self, state: FlowState, plans: Plans, clock: Clock) -> None:
        self._state = state
        self._plans = plans
        self._clock = clock

    async def put(self, document: object) -> FlowRecord | tuple[Fault, ...]:
        """Register a flow, or replace its document; return it, or all faults of the document.

        A running cycle ends as it began; the next one is that of the new document.
        """
        text = msgspec.json.encode(document).decode()
        match self._plans.of(text):
            case Rejected(faults=faults):
                return faults
            case plan:
                return await self._put(plan, text)

    def faults_of(self, document: object) -> tuple[Fault, ...]:
        """Return all faults of a document."""
        match self._plans.of(msgspec.json.encode(document).decode()):
            case Rejected(faults=faults):
                return faults
            case _:
                return ()

    async def _put(self, plan: Plan, text: str) -> FlowRecord:
        while True:
            before = await self._state.load_flow(plan.id)
            after = decision.register(before, plan, text, self._clock())
            if await self._state.commit(FlowChange(Written(before, after), announced=True)):
                return after

    async def start(self, flow_id: str) -> FlowRecord:
        """Start a flow: its cycles run from now on."""
        return await self._change(flow_id, lambda flow: decision.start(flow, self._plan(flow), self._clock()))

    async def stop(self, flow_id: str, reason: str | Text) -> FlowRecord:
        """Stop a flow: its running cycle ends by itself, no further one begins."""
        return await self._change(flow_id, lambda flow: decision.stop(flow, _checked_reason(reason)))

    async def _change(self, flow_id: str, change: Callable[[FlowRecord], FlowRecord]) -> FlowRecord:
        while True:
            before = await self.load(flow_id)
            after = change(before)
            if after is before or await self._state.commit(FlowChange(Written(before, after), announced=True)):
                return after

    async def terminate(
        self, flow_id: str, reason: str | Text, *, component: int | None = None, node: str | None = None
    ) -> CycleRecord:
        """End a node or the nodes of a component of the running cycle, else the whole cycle."""
        return await self._move(
            flow_id, lambda plan, cycle: self._terminated(plan, cycle, component, node, _checked_reason(reason))
        )

    async def stop_component(self, flow_id: str, component: int) -> CycleRecord:
        """Stop a component in the running cycle: its nodes that have not started are skipped."""

        def stopped(plan: Plan, cycle: Cycle) -> Cycle:
            _component(plan, component)
            return advance(plan, cycle, ComponentStopped(component), self._clock()).cycle

        return await self._move(flow_id, stopped)

    async def _move(self, flow_id: str, move: Callable[[Plan, Cycle], Cycle]) -> CycleRecord:
        while True:
            flow = await self.load(flow_id)
            record = await self._state.load_cycle(flow, flow.last_cycle) if flow.in_cycle else None
            if record is None:
                raise Refused(
                    "no_cycle",
                    Text.of("flow {flow_id!r} has no running cycle.", flow_id=flow_id),
                    "Show the flow to see its state.",
                )
            plan = self._plans.of(record.document)
            if not isinstance(plan, Plan):
                raise Refused(
                    "unknown_kind",
                    Text.of("flow {flow_id!r} has node kinds that are not installed here.", flow_id=flow_id),
                )
            cycle = move(plan, record.cycle)
            after, moved = decision.move_cycle(flow, record, cycle, self._plan(flow), self._clock())
            written = Written(flow, after) if after is not flow else None
            if await self._state.commit(FlowChange(written, Written(record, moved), announced=True)):
                return moved

    def _terminated(
        self, plan: Plan, cycle: Cycle, component: int | None, node: str | None, reason: str | Text
    ) -> Cycle:
        if node is not None:
            if node not in plan.nodes or cycle.tasks[node].has_ended:
                raise Refused(
                    "unknown_node",
                    Text.of("flow {plan!r} has no node {node!r} that has not ended.", plan=plan.id, node=node),
                )
            return advance(plan, cycle, NodeTerminated(node, reason), self._clock()).cycle
        nodes: Iterable[str] = plan.nodes if component is None else _component(plan, component)
        # Their successors are skipped; a merge may start because of that.
        while active := [text for text in nodes if cycle.tasks[text].is_active]:
            for word in active:
                cycle = advance(plan, cycle, NodeTerminated(word, reason), self._clock()).cycle
        return cycle

    async def delete(self, flow_id: str) -> None:
        """Delete a flow with its cycles; a running cycle is cancelled."""
        while not await self._state.delete(await self.load(flow_id)):
            pass

    async def load(self, flow_id: str) -> FlowRecord:
        """Return a flow."""
        flow = await self._state.load_flow(flow_id)
        if flow is None:
            raise Refused(
                "unknown_flow",
                Text.of("there is no flow {flow_id!r}.", flow_id=flow_id),
                "List the flows to see their ids.",
            )
        return flow

    async def load_all(self) -> list[FlowRecord]:
        """Return all flows by their ids."""
        flow_records = [await self._state.load_flow(flow_id) for flow_id in await self._state.flow_ids()]
        return [flow for flow in flow_records if flow is not None]

    async def load_cycle(self, flow: FlowRecord, number: int | None = None) -> CycleRecord | None:
        """Return a cycle of a flow, without a number the last; None when it is not kept."""
        return await self._state.load_cycle(flow, flow.last_cycle if number is None else number)

    async def progress(self, cycle: Cycle) -> Mapping[str, WorkerProgress]:
        """Return the progress of the running nodes of a cycle that workers have begun."""
        return await self._state.progress(cycle)

    def plan_of(self, flow: FlowRecord) -> Plan | Rejected:
        """Return the plan of a flow, or why it has none here."""
        return self._plans.of(flow.document)

    def _plan(self, flow: FlowRecord) -> Plan:
        match self.plan_of(flow):
            case Rejected():
                raise Refused(
                    "unknown_kind",
                    Text.of("flow {flow_id!r} has node kinds that are not installed here.", flow_id=flow.flow_id),
                )
            case plan:
                return plan


def _component(plan: Plan, index: int) -> tuple[str, ...]:
    if not 0 <= index < len(plan.components):
        reason = Text.of(
            "flow {plan!r} has no component {index}; it has {count}, counted from 0.",
            plan=plan.id,
            index=index,
            count=len(plan.components),
        )
        raise Refused("unknown_component", reason)
    return plan.components[index]


def _checked_reason(reason: str | Text) -> str | Text:
    if not 0 < len(str(reason)) <= LONGEST_REASON:
        raise Refused(
            "invalid_payload", Text.of("a reason has 1 to {longest_reason} characters.", longest_reason=LONGEST_REASON)
        )
    return reason
