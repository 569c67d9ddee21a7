"""The operations of the HTTP API about flows: list, show, draw, start, stop, terminate."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from edge.features.page import flow_views
from edge.features.page.flow_models import FlowChangeBody, FlowDetail, FlowList
from edge.features.page.operation import ApiCall, ApiOperation, Execute, Svg
from edge.features.page.services import WebServices
from edge.foundation.errors import Refused
from edge.model.role import Role

if TYPE_CHECKING:
    from edge.features.flows.cycle_service import FlowService

_CYCLE: Final = {"cycle": "The number of a cycle; without it the last."}


async def _flows(services: WebServices, _: ApiCall) -> FlowList:
    return await flow_views.list_flows(services.flows)


async def _flow(services: WebServices, call: ApiCall) -> FlowDetail:
    flows = flow_views.require_flows(services.flows)
    return await flow_views.flow_detail(flows, call.path["flow"], cycle_number(call.query.get("cycle", "")))


async def _graph(services: WebServices, call: ApiCall) -> Svg:
    flows = flow_views.require_flows(services.flows)
    return Svg(await flow_views.flow_graph(flows, call.path["flow"], cycle_number(call.query.get("cycle", ""))))


def cycle_number(text: str) -> int | None:
    """Return the number of a cycle, None for the last. Raises Refused for another text."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):  # noqa: PLR2004 - an exact number of JSON
        raise Refused("invalid_query", f"{text!r} is no number of a cycle.", "Leave it out for the last cycle.")
    return int(text)


def _change(action: str, change: "Callable[[FlowService, str, FlowChangeBody, str], Awaitable[object]]") -> Execute:
    """Return the operation that changes a flow."""

    async def execute(services: WebServices, call: ApiCall) -> FlowDetail:
        flows, flow_id, asked = flow_views.require_flows(services.flows), call.path["flow"], call.body
        try:
            await change(flows, flow_id, asked, f"by {call.caller.at_page}")
        except Refused as refusal:
            services.audit.called(call.caller, action, flow_id, asked.reason, refusal.message)
            raise
        services.audit.called(call.caller, action, flow_id, asked.reason)
        services.events.publish("flows")
        return await flow_views.flow_detail(flows, flow_id, None)

    return execute


async def _stop(flows: "FlowService", flow_id: str, asked: FlowChangeBody, by: str) -> None:
    await flows.stop(flow_id, asked.reason or by)


async def _terminate(flows: "FlowService", flow_id: str, asked: FlowChangeBody, by: str) -> None:
    reason = asked.reason or by
    if asked.node and asked.component is not None:
        raise Refused("invalid_payload", "`node` and `component` exclude each other.", "Leave one of them out.")
    if not asked.node and asked.component is None:
        stopped = await flows.stop(flow_id, reason)
        if not stopped.in_cycle:
            return
    await flows.terminate(flow_id, reason, component=asked.component, node=asked.node or None)


_FLOW: Final = "/flows/{flow}"
_CHANGES: Final[dict[str, tuple[str, Execute]]] = {
    "start": (
        "Start a flow: its cycles run from now on.",
        _change("flows start", lambda flows, flow_id, *_: flows.start(flow_id)),
    ),
    "stop": (
        "Stop a flow: its running cycle ends by itself, no further one begins.",
        _change("flows stop", _stop),
    ),
    "terminate": (
        "Stop a flow and cancel its running cycle; with a node or a component only that part of the cycle.",
        _change("flows terminate", _terminate),
    ),
}

FLOW_OPERATIONS: Final = (
    ApiOperation("GET", "/flows", "List the flows.", Role.OBSERVER, FlowList, _flows),
    ApiOperation("GET", _FLOW, "Return a flow with a cycle.", Role.OBSERVER, FlowDetail, _flow, query=_CYCLE),
    ApiOperation("GET", f"{_FLOW}/graph.svg", "Return the graph of a flow.", Role.OBSERVER, Svg, _graph, query=_CYCLE),
    *(
        ApiOperation("POST", f"{_FLOW}/{name}", meaning, Role.OPERATOR, FlowDetail, execute, FlowChangeBody)
        for name, (meaning, execute) in _CHANGES.items()
    ),
)
"""The operations about flows; they are refused where flows are off."""
