"""Returns the public form of flows, their cycles and nodes."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask, reason_in
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.hidden_outputs import NOTHING_HIDDEN, MayRead, hidden_nodes, may_read_all, shown_tasks
from edge.features.flows.node_task import LARGEST_INLINE, WorkerProgress
from edge.features.flows.plan import Plan
from edge.features.flows.public_flow import PublicCycle, PublicCycleSummary, PublicFlow, PublicFlowDetail, PublicNode
from edge.features.flows.state import CycleRecord, FlowRecord
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text
from edge.model.instant import rfc3339

_LAST_CYCLES: Final = 10
NO_PROGRESS: Final[Mapping[str, WorkerProgress]] = {}


def public_flow(flow: FlowRecord, language: str = ENGLISH) -> PublicFlow:
    """Return a flow in short, for a reader of a language."""
    return PublicFlow(
        id=flow.flow_id,
        status=flow.status.value,
        reason=reason_in(flow.reason, language),
        last_cycle=flow.last_cycle if flow.last_cycle >= 0 else None,
        last_at=rfc3339(flow.last_at),
        in_cycle=flow.in_cycle,
        next_at=rfc3339(flow.next_at),
        created_at=rfc3339(flow.created_at),
        ended={status.value: count for status, count in flow.ended.items()},
        missed=flow.missed,
    )


async def public_detail(
    service: FlowService,
    flow_id: str,
    number: int | None,
    may_read: MayRead = may_read_all,
    language: str = ENGLISH,
) -> PublicFlowDetail:
    """Return a flow with a cycle, without a number the last, for a reader. Raises Refused for an unknown one."""
    flow = await service.load(flow_id)
    plan = service.plan_of(flow)
    record = await load_cycle(service, flow, number)
    first = max(0, flow.last_cycle - _LAST_CYCLES + 1)
    last = [await service.load_cycle(flow, index) for index in range(flow.last_cycle, first - 1, -1)]
    return PublicFlowDetail(
        flow=public_flow(flow, language),
        components=plan.components if isinstance(plan, Plan) else (),
        entry_nodes=plan.entry_nodes if isinstance(plan, Plan) else (),
        order=plan.layers if isinstance(plan, Plan) else (),
        cycle=await _cycle(service, record, may_read, language) if record else None,
        cycles=tuple(_summary(cycle_record) for cycle_record in last if cycle_record),
        config=msgspec.json.decode(flow.document),
    )


async def load_cycle(service: FlowService, flow: FlowRecord, number: int | None) -> CycleRecord | None:
    """Return a cycle of a flow, without a number the last, None before the first. Raises Refused for an unknown one."""
    record = await service.load_cycle(flow, number)
    if record is None and number is not None:
        raise Refused(
            "unknown_cycle",
            Text.of("cycle {number} of flow {flow_id!r} is not kept.", number=number, flow_id=flow.flow_id),
            "Look at the flow.",
        )
    return record


async def _cycle(service: FlowService, record: CycleRecord, may_read: MayRead, language: str) -> PublicCycle:
    # A flow may have read other tags when the cycle began: the document of the cycle counts.
    return public_cycle(record, await service.progress(record.cycle), hidden_nodes(record.document, may_read), language)


def public_cycle(
    record: CycleRecord,
    progress: Mapping[str, WorkerProgress] = NO_PROGRESS,
    hidden: frozenset[str] = NOTHING_HIDDEN,
    language: str = ENGLISH,
) -> PublicCycle:
    """Return a cycle with its nodes, whose reasons are in a language.

    `progress` is that of nodes in workers; the nodes of `hidden` are without outputs.
    """
    cycle = record.cycle
    tasks = shown_tasks(cycle.tasks, hidden)
    counts = Counter(task.shown_status for task in tasks.values())
    return PublicCycle(
        number=cycle.number,
        status=cycle.status.value,
        at=rfc3339(cycle.at),
        started_at=rfc3339(record.started_at),
        ended_at=rfc3339(record.ended_at),
        owner=record.owner,
        nodes=tuple(
            _node(cycle, node, task, progress.get(node), language, is_hidden=node in hidden)
            for node, task in tasks.items()
        ),
        statistics={"total": len(tasks), **{status.value: counts.get(status, 0) for status in NodeStatus}},
    )


def _summary(record: CycleRecord) -> PublicCycleSummary:
    cycle = record.cycle
    return PublicCycleSummary(
        number=cycle.number,
        status=cycle.status.value,
        at=rfc3339(cycle.at),
        took_seconds=None if record.ended_at is None else (record.ended_at - record.started_at) / 1000,
        failed=tuple(node for node, task in cycle.tasks.items() if task.status is NodeStatus.FAILED),
    )


def _node(
    cycle: Cycle, node: str, task: NodeTask, progress: WorkerProgress | None, language: str, *, is_hidden: bool
) -> PublicNode:
    size = len(msgspec.json.encode(task.output))
    reference = {"ref": f"{cycle.flow_id}_{cycle.number}_{node}", "bytes": size}
    return PublicNode(
        node=node,
        status=task.shown_status.value,
        attempts=task.attempts,
        progress=100 if task.status is NodeStatus.COMPLETED else progress.progress if progress else 0,
        worker=(progress.worker_id or "") if progress else "",
        message=(progress.message or "") if progress and not is_hidden else "",
        reason=task.reason_in(language),
        output=reference if size > LARGEST_INLINE else task.output,
        started_at=rfc3339(task.started_at),
        ended_at=rfc3339(task.ended_at),
        hidden=is_hidden,
    )
