"""Reads flows for the API and the pages: lists, states, cycles, outputs and the graph.

The rooms of the flows are imported where they are used: they are not loaded where flows are off.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from edge.features.page.flow_models import CycleLine, FlowCycle, FlowDetail, FlowList, FlowNodeLine, FlowSummary
from edge.features.page.instants import utc
from edge.foundation.errors import Refused

if TYPE_CHECKING:
    from edge.features.flows.cycle import NodeTask
    from edge.features.flows.cycle_service import FlowService
    from edge.features.flows.state import CycleRecord, FlowRecord

_LONGEST_OUTPUT: Final = 500
_LAST_CYCLES: Final = 10
_OFF: Final = "flows are off on this gateway."
_ADVICE: Final = "Switch them on: [flows] run = on."


def require_flows(flows: "FlowService | None") -> "FlowService":
    """Return the flows of the store. Raises Refused where they are off."""
    if flows is None:
        raise Refused("flows_off", _OFF, _ADVICE)
    return flows


async def list_flows(flows: "FlowService | None") -> FlowList:
    """Return all flows by their ids."""
    found = await flows.load_all() if flows else []
    return FlowList(enabled=flows is not None, flows=tuple(map(flow_summary, found)))


def flow_summary(flow: "FlowRecord") -> FlowSummary:
    """Return a flow in short."""
    return FlowSummary(
        id=flow.flow_id,
        status=flow.status.value,
        reason=flow.reason,
        last_cycle=flow.last_cycle if flow.last_cycle >= 0 else None,
        in_cycle=flow.in_cycle,
        next_at=utc(flow.next_at),
        ended={status.value: count for status, count in flow.ended.items()},
        missed=flow.missed,
    )


async def flow_detail(flows: "FlowService", flow_id: str, number: int | None) -> FlowDetail:
    """Return a flow with a cycle, without a number the last. Raises Refused for an unknown one."""
    # Imported only where flows are on.
    from edge.features.flows.plan import Plan  # noqa: PLC0415

    flow = await flows.load(flow_id)
    plan = flows.plan_of(flow)
    record = await _load_cycle(flows, flow, number)
    first = max(0, flow.last_cycle - _LAST_CYCLES + 1)
    last = [await flows.load_cycle(flow, each) for each in range(flow.last_cycle, first - 1, -1)]
    return FlowDetail(
        flow=flow_summary(flow),
        components=plan.components if isinstance(plan, Plan) else (),
        cycle=await _cycle(flows, record) if record else None,
        cycles=tuple(_line(each) for each in last if each),
        config=msgspec.json.decode(flow.document),
    )


async def flow_graph(flows: "FlowService", flow_id: str, number: int | None) -> str:
    """Return the graph of a flow as SVG with the states of a cycle. Raises Refused for an unknown one."""
    # Imported only where flows are on.
    from edge.chart.svg import chart_svg  # noqa: PLC0415
    from edge.features.flows.graph_drawing import draw_flow  # noqa: PLC0415
    from edge.features.flows.plan import Plan  # noqa: PLC0415

    flow = await flows.load(flow_id)
    plan = flows.plan_of(flow)
    if not isinstance(plan, Plan):
        raise Refused("unknown_kind", f"flow {flow_id!r} has node kinds that are not installed here.")
    record = await _load_cycle(flows, flow, number)
    # The flow may have been replaced since this cycle.
    fits = record is not None and record.cycle.tasks.keys() == plan.nodes.keys()
    return chart_svg(draw_flow(plan, record.cycle if record and fits else None))


async def _load_cycle(flows: "FlowService", flow: "FlowRecord", number: int | None) -> "CycleRecord | None":
    record = await flows.load_cycle(flow, number)
    if record is None and number is not None:
        raise Refused("unknown_cycle", f"cycle {number} of flow {flow.flow_id!r} is not kept.", "Look at the flow.")
    return record


def _line(record: "CycleRecord") -> CycleLine:
    cycle = record.cycle
    return CycleLine(
        number=cycle.number,
        status=cycle.status.value,
        at=utc(cycle.at),
        took_ms=None if record.ended_at is None else record.ended_at - record.started_at,
        failed=tuple(node for node, task in cycle.tasks.items() if task.status.value == "failed"),
    )


async def _cycle(flows: "FlowService", record: "CycleRecord") -> FlowCycle:
    cycle, progress = record.cycle, await flows.progress(record.cycle)
    nodes = []
    for node, task in cycle.tasks.items():
        worker = progress.get(node)
        nodes.append(
            FlowNodeLine(
                node=node,
                status=task.shown_status.value,
                attempts=task.attempts,
                progress=worker.progress if worker else 0,
                worker=(worker.worker_id or "") if worker else "",
                message=(worker.message or "") if worker else "",
                reason=task.reason or "",
                output=_output(task),
            )
        )
    return FlowCycle(
        number=cycle.number,
        status=cycle.status.value,
        at=utc(cycle.at),
        started_at=utc(record.started_at),
        ended_at=utc(record.ended_at),
        owner=record.owner,
        nodes=tuple(nodes),
    )


def _output(task: "NodeTask") -> str:
    if task.output is None:
        return ""
    text = msgspec.json.encode(task.output).decode()
    return text if len(text) <= _LONGEST_OUTPUT else f"{text[:_LONGEST_OUTPUT]}…"
