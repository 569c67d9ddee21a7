"""Flows on the station page and in the HTTP API: list, show, draw, start, stop, terminate.

The rooms of the flows are imported where they are used: they are not loaded where flows are off.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from edge.access.web_audit import WebCaller
from edge.app.feature_ports import Telemetry
from edge.app.page_part import ApiCall, ApiOperation, Execute, PageData, PagePart, PageServices, Svg
from edge.features.flows.public_flow import PublicFlow, PublicFlowDetail, word_of
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.user import Role

if TYPE_CHECKING:
    from edge.features.flows.cycle_service import FlowService


class FlowList(Struct, frozen=True, kw_only=True):
    """The flows of the store by their ids; `enabled` is false where this gateway runs none."""

    enabled: bool
    flows: tuple[PublicFlow, ...]


class FlowChangeBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a change of a flow; `node` or `component` narrow what is terminated."""

    reason: Annotated[str, Meta(max_length=1000)] = ""
    node: Annotated[str, Meta(max_length=255)] = ""
    component: Annotated[int, Meta(ge=0, le=10_000)] | None = None


_OFF: Final = "flows are off on this gateway."
_ADVICE: Final = "Switch them on: [flows] run = on."


def _flows_of(services: PageServices) -> "FlowService | None":
    return services.ports["flows"].service if "flows" in services.ports else None


def _may_read(services: PageServices, caller: WebCaller) -> Callable[[str], bool]:
    """Return whether the role of a caller may read the values of a tag; of every one where telemetry is off."""
    telemetry: Telemetry | None = services.ports.get("telemetry")
    return lambda tag: telemetry is None or telemetry.tags.may_read(tag, caller.role)


def require_flows(services: PageServices) -> "FlowService":
    """Return the flows of the store. Raises Refused where they are off."""
    if (flows := _flows_of(services)) is None:
        raise Refused("flows_off", _OFF, _ADVICE)
    return flows


async def list_flows(flows: "FlowService | None", language: str) -> FlowList:
    """Return all flows by their ids, for a reader of a language."""
    if flows is None:
        return FlowList(enabled=False, flows=())
    from edge.features.flows.public_form import public_flow  # noqa: PLC0415 - flows may be off

    return FlowList(enabled=True, flows=tuple(public_flow(flow, language) for flow in await flows.load_all()))


async def flow_detail(services: PageServices, caller: WebCaller, flow_id: str, number: int | None) -> PublicFlowDetail:
    """Return a flow with a cycle, without a number the last, for a caller. Raises Refused for an unknown one."""
    from edge.features.flows.public_form import public_detail  # noqa: PLC0415 - flows may be off

    flows, may_read = require_flows(services), _may_read(services, caller)
    return await public_detail(flows, flow_id, number, may_read, caller.language)


async def flow_graph(services: PageServices, caller: WebCaller, flow_id: str, number: int | None) -> str:
    """Return the graph of a flow as SVG with the states of a cycle for a caller. Raises Refused for an unknown one."""
    from edge.features.flows.graph_drawing import graph_svg  # noqa: PLC0415 - flows may be off

    flows, may_read = require_flows(services), _may_read(services, caller)
    return await graph_svg(flows, flow_id, number, may_read, caller.language)


_CYCLE: Final = {"cycle": "The number of a cycle; without it the last."}


async def _flows(services: PageServices, call: ApiCall) -> FlowList:
    return await list_flows(_flows_of(services), call.caller.language)


async def _flow(services: PageServices, call: ApiCall) -> PublicFlowDetail:
    return await flow_detail(services, call.caller, call.path["flow"], cycle_number(call.query.get("cycle", "")))


async def _graph(services: PageServices, call: ApiCall) -> Svg:
    number = cycle_number(call.query.get("cycle", ""))
    return Svg(await flow_graph(services, call.caller, call.path["flow"], number))


_MOST_DIGITS: Final = 15
"""A number of more is not exact in JSON."""


def cycle_number(text: str) -> int | None:
    """Return the number of a cycle, None for the last. Raises Refused for another text."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise Refused(
            "invalid_query",
            Text.of("{text!r} is not a number of a cycle.", text=text),
            "Leave it out for the last cycle.",
        )
    return int(text)


def _change(action: str, change: "Callable[[FlowService, str, FlowChangeBody, Text], Awaitable[object]]") -> Execute:
    """Return the operation that changes a flow."""

    async def execute(services: PageServices, call: ApiCall) -> PublicFlowDetail:
        flows, flow_id, asked = require_flows(services), call.path["flow"], call.body
        try:
            await change(flows, flow_id, asked, Text.of("by {person}", person=call.caller.at_page))
        except Refused as refusal:
            services.audit.called(call.caller, action, flow_id, asked.reason, refusal.message)
            raise
        services.audit.called(call.caller, action, flow_id, asked.reason)
        services.notify("flows")
        return await flow_detail(services, call.caller, flow_id, None)

    return execute


async def _stop(flows: "FlowService", flow_id: str, asked: FlowChangeBody, by: Text) -> None:
    await flows.stop(flow_id, asked.reason or by)


async def _terminate(flows: "FlowService", flow_id: str, asked: FlowChangeBody, by: Text) -> None:
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

_OPERATIONS: Final = (
    ApiOperation("GET", "/flows", "List the flows.", Role.OBSERVER, FlowList, _flows),
    ApiOperation("GET", _FLOW, "Return a flow with a cycle.", Role.OBSERVER, PublicFlowDetail, _flow, query=_CYCLE),
    ApiOperation("GET", f"{_FLOW}/graph.svg", "Return the graph of a flow.", Role.OBSERVER, Svg, _graph, query=_CYCLE),
    *(
        ApiOperation("POST", f"{_FLOW}/{name}", meaning, Role.OPERATOR, PublicFlowDetail, execute, FlowChangeBody)
        for name, (meaning, execute) in _CHANGES.items()
    ),
)
"""The operations about flows; they are refused where flows are off."""


async def _flows_page(services: PageServices, caller: WebCaller, _query: Mapping[str, str]) -> PageData:
    return "flows.html", {"page": await list_flows(_flows_of(services), caller.language), "subjects": ["flows"]}


async def _flow_page(services: PageServices, caller: WebCaller, query: Mapping[str, str]) -> PageData:
    cycle = query.get("cycle", "")
    detail = await flow_detail(services, caller, query.get("id", ""), cycle_number(cycle))
    word = partial(word_of, language=caller.language)
    return "flow.html", {"detail": detail, "cycle": cycle, "word": word, "subjects": ["flows"]}


PAGE: Final = PagePart(
    _OPERATIONS,
    {"/flows": _flows_page, "/flow": _flow_page},
    {"/flows": "flows"},
    Path(__file__).parent / "templates",
    manual={"/flows": "reference/flows", "/flow": "reference/flows"},
)
