"""Describes a flow as a whole: its state, its last cycle, its nodes and their number by state."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from edge.features.flows.cycle import NodeStatus, NodeTask
from edge.features.flows.node_task import LARGEST_INLINE
from edge.features.flows.plan import Plan, Rejected
from edge.features.flows.record import CycleRecord, FlowRecord
from edge.features.flows.worker_task import WorkerProgress

NO_PROGRESS: Final[Mapping[str, WorkerProgress]] = {}


def flow_summary(flow: FlowRecord) -> dict[str, Any]:
    """Return the line of a flow in a list."""
    return {
        "id": flow.flow_id,
        "status": flow.status.value,
        "reason": flow.reason or None,
        "last_cycle": flow.last_cycle,
        "last_at": flow.last_at,
        "next_execution": flow.next_at,
        "in_cycle": flow.in_cycle,
        "created_at": flow.created_at,
        "ended": {status.value: count for status, count in flow.ended.items()},
        "missed": flow.missed,
    }


def flow_status(
    flow: FlowRecord,
    plan: Plan | Rejected,
    cycle: CycleRecord | None,
    progress: Mapping[str, WorkerProgress] = NO_PROGRESS,
) -> dict[str, Any]:
    """Return the comprehensive status of a flow."""
    structure = None
    if isinstance(plan, Plan):
        structure = {"components": plan.components, "entry_nodes": plan.entry_nodes, "order": plan.layers}
    return {
        **flow_summary(flow),
        "config": msgspec.json.decode(flow.document),
        "structure": structure,
        "cycle": cycle_status(cycle, progress) if cycle else None,
    }


def cycle_status(record: CycleRecord, progress: Mapping[str, WorkerProgress] = NO_PROGRESS) -> dict[str, Any]:
    """Return a cycle with its nodes and their number by state; `progress` is that of nodes in workers."""
    cycle = record.cycle
    counts = Counter(task.shown_status for task in cycle.tasks.values())
    return {
        "cycle": cycle.number,
        "status": cycle.status.value,
        "at": cycle.at,
        "start_time": record.started_at,
        "end_time": record.ended_at,
        "owner": record.owner,
        "nodes": {node: _node_status(record, node, task, progress.get(node)) for node, task in cycle.tasks.items()},
        "statistics": {"total": len(cycle.tasks), **{status.value: counts.get(status, 0) for status in NodeStatus}},
    }


def _node_status(record: CycleRecord, node: str, task: NodeTask, progress: WorkerProgress | None) -> dict[str, Any]:
    size = len(msgspec.json.encode(task.output))
    reference = {"ref": f"{record.cycle.flow_id}_{record.cycle.number}_{node}", "bytes": size}
    return {
        "status": task.shown_status.value,
        "output": reference if size > LARGEST_INLINE else task.output,
        "reason": task.reason,
        "attempts": task.attempts,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "worker": progress.worker_id if progress else None,
        "progress": 100 if task.status is NodeStatus.COMPLETED else progress.progress if progress else 0,
        "message": progress.message if progress else None,
    }
