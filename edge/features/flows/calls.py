"""Execute the calls of the MES for flows: register, delete, read, start, stop, terminate; each event once."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.app.parts import GatewayParts
from edge.features.flows.cycle import NodeTask
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.feature import FLOW_KIND, FLOW_METHODS
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.plan import Plan, Plans, Rejected
from edge.features.flows.public_flow import PublicNode
from edge.features.flows.public_form import public_cycle, public_detail, public_flow
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import CycleRecord, FlowRecord
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, FLOW_METHOD_TYPE
from edge.model.isa95 import Payload
from edge.northbound.reply import THE_MES, CallEffect, Handler, Reply, arguments_of, caller_of, settings_method
from edge.station.settings import SettingsMethod
from edge.store import dedupe
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit


class FlowCall(Payload, frozen=True, kw_only=True):
    """The flow that a method is for; `component` (Stop, Terminate) and `node` (Terminate) name a part of its cycle.

    Example: {"FlowID": "press-mean", "Reason": "sensor replaced", "By": "anna"}
    """

    flow_id: str
    reason: str = ""
    by: str = ""
    component: int | None = None
    node: str | None = None


_DONE: Final = "done"
_MOST_FAULTS: Final = 20


class FlowAnswer(Struct, frozen=True):
    """The data of an answer, the flows that the call named, and whether the call changed them."""

    data: object
    subject: str
    has_changed: bool
    by: str = ""
    comment: str = ""


class FlowCalls:
    """The flows of the store as the MES changes them."""

    def __init__(
        self, service_with: Callable[[Commit], FlowService], store: Store, dedupe_ms: int, version: int = 2
    ) -> None:
        """Change flows with `service_with`: a service that adds a commit to each of its own.

        `version` is that of the answers: `[northbound] event_version`.
        """
        self._version = version
        self._service_with = service_with
        self._service = service_with(NOTHING)
        self._store = store
        self._dedupe_ms = dedupe_ms

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        methods = {FLOW_METHOD_TYPE.format(method): partial(self._call_method, method) for method in FLOW_METHODS}
        return {CONFIG_TYPE.format(FLOW_KIND): self._configure, **methods}

    async def _call_method(self, method: str, event: CloudEvent, origin: str) -> Reply:
        return _reply(f"{method} flow", await self.call(method, event, caller_of(origin)))

    async def _configure(self, event: CloudEvent, _origin: str) -> Reply:
        method = settings_method(event)
        return _reply(f"{method.value} flow", await self.configure(method, event))

    async def configure(self, method: SettingsMethod, event: CloudEvent) -> FlowAnswer:
        """Register or delete flows, or return them; with all faults in Refused(`invalid_payload`)."""
        items = _items(event.data)
        if method is SettingsMethod.GET:
            flow_records = await self._service.load_all()
            ids = {_id(value) for value in items}
            data = [await self._status(flow) for flow in flow_records if not ids or flow.flow_id in ids]
            return FlowAnswer(data, ", ".join(sorted(ids)), has_changed=False)
        subject = ", ".join(_id(value) for value in items)
        if await self._is_done(event):
            return FlowAnswer(None, subject, has_changed=False)
        if method is SettingsMethod.PUT:
            self._refuse_faults(items)
        # The mark is part of the last commit.
        services = [*[self._service] * (len(items) - 1), self._service_with(self._mark(event))]
        for service, item in zip(services, items, strict=False):
            await (self._delete(service, _id(item)) if method is SettingsMethod.DELETE else service.put(item))
        await self._mark_without_effect(event)
        return FlowAnswer(None, subject, has_changed=True)

    async def _delete(self, service: FlowService, flow_id: str) -> None:
        """Delete a flow; an unknown one is deleted already."""
        if flow_id in {flow_record.flow_id for flow_record in await service.load_all()}:
            await service.delete(flow_id)

    async def call(self, method: str, event: CloudEvent, caller: Text = THE_MES) -> FlowAnswer:
        """Execute a method of FLOW_METHODS and return the flow after it; `caller` is named where no person is."""
        call = arguments_of(event, FlowCall, "Send FlowID, and optionally Reason and By.")
        is_new = not await self._is_done(event)
        if is_new:
            await self._execute(method, call, caller, self._service_with(self._mark(event)))
            await self._mark_without_effect(event)
        flow = await self._service.load(call.flow_id)
        data = public_flow(flow) if self._version > 1 else _summary_v1(flow)
        return FlowAnswer(data, call.flow_id, is_new, call.by, call.reason)

    async def _execute(self, method: str, call: FlowCall, caller: Text, marking: FlowService) -> None:
        """Execute a method; the last commit is that of the service that marks the event."""
        reason = call.reason or Text.of("{method} by {person}", method=method, person=call.by or caller)
        match method:
            case "Start":
                await marking.start(call.flow_id)
            case "Stop" if call.component is not None:
                await marking.stop_component(call.flow_id, call.component)
            case "Stop":
                await marking.stop(call.flow_id, reason)
            case _ if call.component is None and call.node is None:
                if (await self._service.stop(call.flow_id, reason)).in_cycle:
                    await marking.terminate(call.flow_id, reason)
            case _:
                await marking.terminate(call.flow_id, reason, component=call.component, node=call.node)

    def _refuse_faults(self, documents: Sequence[object]) -> None:
        """Refuse all documents when one has a fault, with the faults of each: none is stored then."""
        refused = []
        for document in documents:
            found = self._service.faults_of(document)
            faults = [f"{fault.kind.value} at {fault.where}: {fault.message}" for fault in found[:_MOST_FAULTS]]
            more = f"; and {len(found) - _MOST_FAULTS} more" if len(found) > _MOST_FAULTS else ""
            if faults:
                refused.append(f"flow {_id(document)!r} has faults: {'; '.join(faults)}{more}")
        if refused:
            raise Refused("invalid_payload", Text.of("{refused}.", refused="; ".join(refused)))

    async def _status(self, flow: FlowRecord) -> object:
        if self._version > 1:
            return await public_detail(self._service, flow.flow_id, None)
        return _status_v1(flow, self._service.plan_of(flow), await self._service.load_cycle(flow))

    async def _is_done(self, event: CloudEvent) -> bool:
        return await dedupe.load_answer(self._store, event.source, event.id) is not None

    def _mark(self, event: CloudEvent) -> Commit:
        """Return the mark of the event. It needs no guard: the guard of the flow lets only one commit succeed."""
        marked = dedupe.mark(self._store.keys, event.source, event.id, _DONE, self._dedupe_ms)
        return Commit(operations=marked.operations)

    async def _mark_without_effect(self, event: CloudEvent) -> None:
        """Mark an event that changed nothing, as the start of a flow that runs."""
        if not await self._is_done(event):
            await self._store.commit(self._mark(event))


def _reply(action: str, found: FlowAnswer) -> Reply:
    return Reply(
        found.data, change=CallEffect(action, found.subject, found.comment, found.by) if found.has_changed else None
    )


def _items(data: object) -> Sequence[object]:
    return data if isinstance(data, list | tuple) else () if data is None else (data,)


def _id(item: object) -> str:
    found = item.get("id", item.get("ID")) if isinstance(item, dict) else None
    if not isinstance(found, str):
        raise Refused("invalid_payload", "a flow is an object with its id.", "Send the document of the flow.")
    return found


def _summary_v1(flow: FlowRecord) -> dict[str, Any]:
    """Return a flow in short as in release 0.9."""
    return {
        "id": flow.flow_id,
        "status": flow.status.value,
        "reason": str(flow.reason) or None,
        "last_cycle": flow.last_cycle,
        "last_at": flow.last_at,
        "next_execution": flow.next_at,
        "in_cycle": flow.in_cycle,
        "created_at": flow.created_at,
        "ended": {status.value: count for status, count in flow.ended.items()},
        "missed": flow.missed,
    }


def _status_v1(flow: FlowRecord, plan: Plan | Rejected, record: CycleRecord | None) -> dict[str, Any]:
    """Return a flow with its last cycle as in release 0.9."""
    structure = None
    if isinstance(plan, Plan):
        structure = {"components": plan.components, "entry_nodes": plan.entry_nodes, "order": plan.layers}
    cycle = record and {
        "cycle": record.cycle.number,
        "status": record.cycle.status.value,
        "at": record.cycle.at,
        "start_time": record.started_at,
        "end_time": record.ended_at,
        "owner": record.owner,
        "nodes": {node.node: _node_v1(node, record.cycle.tasks[node.node]) for node in public_cycle(record).nodes},
        "statistics": public_cycle(record).statistics,
    }
    return {**_summary_v1(flow), "config": msgspec.json.decode(flow.document), "structure": structure, "cycle": cycle}


def _node_v1(node: PublicNode, task: NodeTask) -> dict[str, Any]:
    members = {"status": node.status, "output": node.output, "reason": node.reason or None, "attempts": task.attempts}
    times = {"started_at": task.started_at, "ended_at": task.ended_at}
    return members | times | {"worker": None, "progress": node.progress, "message": None}


_NS_PER_MS = 1_000_000


def serve_calls(core: GatewayParts, kinds: NodeKinds) -> FlowCalls:
    """Return the handler of the calls with which the MES reads and changes flows."""

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    plans = Plans(kinds)

    def service_with(also: Commit) -> FlowService:
        return FlowService(RedisFlowState(core.store, also), plans, clock)

    version = core.settings.northbound.event_version
    return FlowCalls(service_with, core.store, core.settings.retention.dedupe * 1000, version)
