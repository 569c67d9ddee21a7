"""Flows in station files; those in `flows/stopped/` are not started when they are registered."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from edge.app.documents import Described, GuardedStore, decoded_or_text
from edge.config import Settings
from edge.features.flows import decision
from edge.features.flows.plan import Plan, Plans, Rejected
from edge.features.flows.plugins import load_usable_kinds
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.state import FlowChange, FlowStatus, Written
from edge.foundation.errors import Defect, Refused
from edge.foundation.text import Text
from edge.store.client import Store

_STOPPED: Final = "stopped"


class FlowDocuments:
    """Reads flows with the node kinds of the site, and writes them as its gateway does."""

    most = None

    def __init__(self, settings: Settings, ports: Mapping[str, Any]) -> None:
        self._nodes = settings.section(FlowsSettings).nodes
        self._ports = ports
        self._plans: Plans | None = None

    async def prepare(self) -> None:
        """Load the node kinds, unless this gateway has them."""
        flows = self._ports.get("flows")
        self._plans = Plans(await load_usable_kinds(self._nodes) if flows is None else flows.kinds)

    def read(self, data: object, folders: Sequence[str]) -> tuple[Mapping[str, Described], Sequence[str]]:
        """Return the flow of a file by its id, and all faults."""
        described = Described(data, folder=_STOPPED if _STOPPED in folders[:1] else "")
        describeds = {data["id"]: described} if isinstance(data, dict) and isinstance(data.get("id"), str) else {}
        return describeds, self._faults_of(data)

    def _faults_of(self, data: object) -> Sequence[str]:
        if self._plans is None:
            return ("the file came while the folder was read; read it again",)
        match self._plans.of(msgspec.json.encode(data).decode()):
            case Rejected(faults=faults):
                return [f"{fault.kind.value}: {_place(fault.where)}: {fault.message}" for fault in faults]
            case _:
                return ()

    async def load(self, store: Store) -> Mapping[str, Described]:
        """Return the flows of a store by their ids."""
        state = RedisFlowState(store)
        flows = [await state.load_flow(flow_id) for flow_id in await state.flow_ids()]
        return {
            flow.flow_id: Described(
                decoded_or_text(flow.document), folder="" if flow.status is FlowStatus.RUNNING else _STOPPED
            )
            for flow in flows
            if flow is not None
        }

    async def mark(self, store: Store) -> object:
        """Return the flows: they are few."""
        return await self.load(store)

    async def put(self, target: GuardedStore, _id: str, described: Described) -> bool:
        """Register a flow, and start a new one that is not in the folder `stopped`."""
        if self._plans is None:
            raise Defect("a flow is written without plans")
        text = msgspec.json.encode(described.content).decode()
        plan = self._plans.of(text)
        if not isinstance(plan, Plan):
            raise Refused(
                "flow", Text.of("{file}: the flow has faults", file=described.file), "`edge check station` names them."
            )
        state = RedisFlowState(target.store, target.guard)
        while await target.holds():
            before, now = await state.load_flow(plan.id), target.clock()
            after = decision.register(before, plan, text, now)
            if before is None and described.folder != _STOPPED:
                after = decision.start(after, plan, now)
            if await state.commit(FlowChange(Written(before, after), announced=True)):
                return True
        return False

    async def delete(self, target: GuardedStore, id: str) -> bool:
        """Delete a flow."""
        state = RedisFlowState(target.store, target.guard)
        while await target.holds():
            flow = await state.load_flow(id)
            if flow is None or await state.delete(flow):
                return True
        return False


def _place(where: str | tuple[str, ...]) -> str:
    return where if isinstance(where, str) else ", ".join(where)
