"""Applies station files to a store: fills an empty one, and makes another one as the files are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from edge.access.initialization import OBJECT, REASON, Fill, FillOutcome, fill_once
from edge.access.locks import hold_lock
from edge.app.features import settings_kinds
from edge.features.station_files.content import StationFiles, as_values, read_folder
from edge.features.station_files.flow_plans import load_plans, plan_faults
from edge.features.station_files.objects import (
    Described,
    ObjectChange,
    ObjectDifference,
    ObjectKind,
    Objects,
    StationObject,
    compare,
)
from edge.foundation.errors import Defect, Refused
from edge.foundation.instant import Clock
from edge.model.lock import LockKind
from edge.station.settings import SettingsMethod, StationSettings
from edge.store import initialization, resources
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.initialization import FillState
from edge.store.resources import RULES, TAGS

if TYPE_CHECKING:
    from edge.features.flows.nodes.registry import NodeKinds
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


_WAIT_S = 15.0
"""Longer than the lease of a lock: that of a dead owner expires meanwhile."""

Report = Callable[[ObjectDifference], Awaitable[None]]
"""Called after each change."""


class ReadFiles(Struct, frozen=True):
    """The files of a folder, with the plans of their flows."""

    files: StationFiles
    plans: "Plans | None"


async def read_files(folder: Path, nodes: str, kinds: "NodeKinds | None" = None) -> ReadFiles:
    """Read and check a folder; `nodes` is the folder of the node kinds of the site, unless `kinds` are loaded."""
    plans = await load_plans(folder, nodes, kinds)
    return ReadFiles(await asyncio.to_thread(read_folder, folder, plan_faults(plans)), plans)


def all_scopes(scopes: Iterable[str], files: Objects) -> frozenset[str]:
    """Return the scopes that are compared: those of a gateway and those of its files."""
    return frozenset(scopes).union(file.scope for file in files if file.scope)


async def find_differences(store: Store, scopes: Iterable[str], files: Objects) -> tuple[ObjectDifference, ...]:
    """Return how a store differs from files."""
    stored = await load_objects(store, all_scopes(scopes, files))
    return await asyncio.to_thread(compare, files, stored)


async def fill_store(
    store: Store, owner: str, scopes: Sequence[str], read: Callable[[], Awaitable[ReadFiles]], clock: Clock
) -> tuple[FillOutcome, int]:
    """Write the files into an empty store, unless another instance does; return how many objects this one wrote.

    Raises SettingsError with all faults of the files: nothing is written then.
    """
    written = 0

    async def is_empty() -> bool:
        found = await read()
        return not await load_objects(store, all_scopes(scopes, found.files.objects))

    async def prepare() -> Fill:
        found = await read()
        files = found.files.checked()
        writer = ObjectWriter(store, found.plans, clock, initialization.while_filling(store.keys))

        async def fill() -> None:
            nonlocal written
            for difference in await find_differences(store, scopes, files):
                # What was changed since the filling began is a decision of a user: it shows as a difference.
                if difference.change is ObjectChange.MISSING:
                    written += await writer.put(difference.subject, files[difference.subject])

        return fill

    return await fill_once(store, owner, is_empty, prepare), written


async def apply_files(
    store: Store, owner: str, scopes: Sequence[str], read: ReadFiles, clock: Clock, report: Report, *, delete: bool
) -> None:
    """Apply files to a store: it is as they are afterwards; what is not in the files is deleted only if asked.

    Raises SettingsError with all faults of the files: nothing is written then; Refused without files, and while another
    process applies files.
    """
    files = read.files.checked()
    if not files:  # with `delete` nothing would be left of the station
        advice = "`edge station export FOLDER` writes those of the store."
        raise Refused("station", f"{read.files.folder}: there are no station files", advice)
    async with hold_lock(store, LockKind.STATION, OBJECT, owner, REASON, wait_s=_WAIT_S):
        state = await initialization.load_state(store)
        if state is FillState.ABSENT:
            await store.commit(initialization.begin(store.keys))
        writer = ObjectWriter(store, read.plans, clock)
        for object_difference in await find_differences(store, scopes, files):
            if object_difference.change is not ObjectChange.EXTRA:
                await writer.put(object_difference.subject, files[object_difference.subject])
                await report(object_difference)
            elif delete:
                await writer.delete(object_difference.subject)
                await report(object_difference)
        if state is not FillState.FILLED:
            await store.commit(initialization.end(store.keys))
