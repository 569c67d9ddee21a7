"""Reads and writes the objects of station files in the store: one commit for each object."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from edge.app.features import settings_kinds
from edge.features.station_files.content import as_values
from edge.features.station_files.objects import Described, ObjectKind, Objects, StationObject
from edge.foundation.errors import Defect, Refused
from edge.foundation.instant import Clock
from edge.station.settings import SettingsMethod, StationSettings
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.resources import RULES, TAGS

if TYPE_CHECKING:
    from edge.features.flows.plan import Plans


_BATCH = 20
"""Work Masters that are read at a time: a running gateway serves others in between."""


async def load_objects(store: Store, scopes: Iterable[str]) -> Objects:
    """Return the objects of some scopes, and all tags, rules and flows of the store."""
    found: dict[StationObject, Described] = {}
    for scope in sorted(set(scopes)):
        allowed = await resources.load_allowed(store, scope)
        for kind, ids in allowed.resources.items():
            found |= {StationObject(ObjectKind(kind.value), scope, identifier): Described() for identifier in ids}
        if allowed.max_job_orders is not None:
            found[StationObject(ObjectKind.JOB_ACCEPTANCE, scope, "")] = Described(allowed.max_job_orders)
        masters = sorted(allowed.work_masters)
        for start in range(0, len(masters), _BATCH):
            for master in await resources.load_work_masters(store, scope, masters[start : start + _BATCH]):
                found[StationObject(ObjectKind.WORK_MASTER, scope, master.id)] = Described(as_values(master))
    for rule_id, text in (await RULES.load(store)).texts.items():
        found[StationObject(ObjectKind.RULE, "", rule_id)] = Described(_decoded(text))
    for tag, text in (await TAGS.load(store)).texts.items():
        found[StationObject(ObjectKind.TAG, "", tag)] = Described(_decoded(text))
    return {**found, **await _load_flows(store)}


async def load_mark(store: Store) -> object:
    """Return what changes with the objects of a store, without reading its Work Masters."""
    latest, rules, tags = (
        await resources.latest_change(store),
        await RULES.revision(store),
        await TAGS.revision(store),  # an earlier release appends no change of a tag
    )
    return latest, rules, tags, await _load_flows(store)


async def _load_flows(store: Store) -> Objects:
    if not await store.execute("ZCARD", store.keys.flow_schedule()):
        return {}
    # Imported only where there are flows.
    from edge.features.flows.redis_state import RedisFlowState  # noqa: PLC0415
    from edge.features.flows.state import FlowStatus  # noqa: PLC0415

    state = RedisFlowState(store)
    flows = [await state.load_flow(identifier) for identifier in await state.flow_ids()]
    return {
        StationObject(ObjectKind.FLOW, "", flow.flow_id): Described(
            _decoded(flow.document), runs=flow.status is FlowStatus.RUNNING
        )
        for flow in flows
        if flow is not None
    }


def _decoded(text: str) -> Any:
    """Return JSON values; a text that cannot be read differs from every file."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


class ObjectWriter:
    """Writes objects; each commit has the guard. `plans` are those of the flows among them."""

    def __init__(self, store: Store, plans: "Plans | None", clock: Clock, guard: Commit = NOTHING) -> None:
        self._store = store
        self._plans = plans
        self._clock = clock
        self._guard = guard
        self._settings = StationSettings(store, settings_kinds())

    async def put(self, subject: StationObject, described: Described) -> bool:
        """Write an object; return False without a write when the guard does not hold. Raises Refused for a fault."""
        if subject.kind is ObjectKind.FLOW:
            return await self._put_flow(described)
        return await self._change(subject, SettingsMethod.PUT, _payload(subject, described.content))

    async def delete(self, subject: StationObject) -> bool:
        """Delete an object; return False without a write when the guard does not hold."""
        if subject.kind is ObjectKind.FLOW:
            return await self._delete_flow(subject.id)
        payload = None if subject.kind is ObjectKind.JOB_ACCEPTANCE else _payload(subject, None)
        return await self._change(subject, SettingsMethod.DELETE, payload)

    async def _change(self, subject: StationObject, method: SettingsMethod, payload: object) -> bool:
        guarded = {guard.key for guard in self._guard.guards}
        while True:
            plan, _ = await self._settings.plan(subject.scope, subject.kind.value, method, payload)
            result = await self._store.commit(join((self._guard, plan)))
            if isinstance(result, Committed):
                return True
            if result.key in guarded:
                return False

    async def _put_flow(self, described: Described) -> bool:
        # Imported only where there are flows.
        from edge.features.flows import decision  # noqa: PLC0415
        from edge.features.flows.plan import Plan  # noqa: PLC0415
        from edge.features.flows.redis_state import RedisFlowState  # noqa: PLC0415
        from edge.features.flows.state import FlowChange, Written  # noqa: PLC0415

        if self._plans is None:
            raise Defect("a flow is written without plans")
        text = msgspec.json.encode(described.content).decode()
        plan = self._plans.of(text)
        if not isinstance(plan, Plan):
            raise Refused("flow", f"{described.file}: the flow has faults", "`edge check station` names them.")
        state = RedisFlowState(self._store, self._guard)
        while await self._commit(NOTHING):
            before, now = await state.load_flow(plan.id), self._clock()
            after = decision.register(before, plan, text, now)
            if before is None and described.runs:
                after = decision.start(after, plan, now)
            if await state.commit(FlowChange(Written(before, after), announced=True)):
                return True
        return False

    async def _delete_flow(self, flow_id: str) -> bool:
        from edge.features.flows.redis_state import RedisFlowState  # noqa: PLC0415  imported only where there are flows

        state = RedisFlowState(self._store, self._guard)
        while await self._commit(NOTHING):
            flow = await state.load_flow(flow_id)
            if flow is None or await state.delete(flow):
                return True
        return False

    async def _commit(self, change: Commit) -> bool:
        """Write a change that has no guards of its own; return False when the guard does not hold."""
        return isinstance(await self._store.commit(join((self._guard, change))), Committed)


def _payload(subject: StationObject, content: Any) -> object:
    """Return the payload of the event by which a MES would make the same change."""
    match subject.kind:
        case ObjectKind.JOB_ACCEPTANCE:
            return {"max_downloadable_job_orders": content}
        case ObjectKind.MATERIAL_CLASS:
            return [{"MaterialClassID": subject.id}]
        case ObjectKind.MATERIAL_DEFINITION:
            return [{"MaterialDefinitionID": subject.id}]
        case ObjectKind.RULE:
            return [content or {"id": subject.id}]
        case ObjectKind.TAG:
            return [content or {"tag": subject.id}]
        case ObjectKind.WORK_MASTER:
            return [content or {"ID": subject.id}]
        case _:
            return [{"ID": subject.id}]
