"""Apply and read the station settings of the MES: the resources and Work Masters of a scope."""

import json
import pkgutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import structlog
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.text import Text, join_texts
from edge.model.acceptance import MAX_ID_LENGTH, JobAcceptance, ResourceKind, validate_id, validate_size
from edge.model.isa95 import Equipment, Material, Payload, Personnel, PhysicalAsset, WorkMaster, read_payload
from edge.model.recipe import is_recipe_schema
from edge.sfc.compiler import RecipeCheck, RejectedRecipe, compile_recipe
from edge.store import dedupe, jobs, resources
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.dedupe import caller
from edge.store.resources import SettingTexts

MAX_ITEM_BYTES: Final = 16_384
_MOST_FAULTS: Final = 50


class ListedSetting(Struct, frozen=True, kw_only=True):
    """A kind of items: what one is called, the member with its name, where they are kept, and what checks them."""

    noun: str
    title: str
    """What one is called in a sentence of its own, such as `definition of a tag`."""
    name_member: str
    stored: SettingTexts
    most: int
    parse: Callable[[object], tuple[tuple[object, ...], tuple[str, ...]]]
    """Return the items of a list, and all faults."""
    advice: str
    """How to find the faults before."""


async def plan_put(store: Store, listed: ListedSetting, payload: object) -> Commit:
    """Return the commit that stores items, each in the place of one with its name; raises Refused with all faults."""
    items = _items(payload)
    if not items:
        raise Refused(
            "invalid_payload",
            Text.of("the event names no {noun}", noun=listed.noun),
            Text.of("Send a {noun}, or a list.", noun=listed.noun),
        )
    _, faults = listed.parse(list(items))
    name = listed.name_member
    texts = {str(item[name]): _encoded(item) for item in items if isinstance(item, dict) and name in item}
    large = [name for name, text in texts.items() if len(text) > MAX_ITEM_BYTES]
    problems = [*faults, *(f"{listed.noun} {word!r}: it has more than {MAX_ITEM_BYTES} bytes" for word in large)]
    revision, others = await listed.stored.count_without(store, texts)
    if others + len(texts) > listed.most:
        problems.append(f"there would be more than {listed.most} {listed.noun}s; delete others first")
    if problems:
        raise Refused(listed.noun, "; ".join(problems[:_MOST_FAULTS]), listed.advice)
    return listed.stored.save(store.keys, revision, texts)


async def plan_delete(store: Store, listed: ListedSetting, payload: object) -> Commit:
    """Return the commit that removes items by their names; an unknown name is removed already."""
    names = _names(listed, payload)
    if not names or not all(isinstance(name, str) and name for name in names):
        advice = Text.of("Send objects with the member {name_member}.", name_member=listed.name_member)
        raise Refused("invalid_payload", Text.of("the event names no {noun}", noun=listed.noun), advice)
    return listed.stored.save(store.keys, await listed.stored.revision(store), dict.fromkeys(map(str, names)))


async def read_items(store: Store, listed: ListedSetting, payload: object) -> list[Any]:
    """Return the stored items as they were sent: those that the payload names, without a payload all."""
    named = _names(listed, payload)
    stored = (await listed.stored.load(store)).texts
    return [json.loads(text) for name, text in stored.items() if not named or name in named]


def _items(payload: object) -> Sequence[object]:
    if payload is None:
        return ()
    return payload if isinstance(payload, list) else [payload]


def _names(listed: ListedSetting, payload: object) -> list[object]:
    items = (item for item in _items(payload) if isinstance(item, str | dict))
    return [item if isinstance(item, str) else item.get(listed.name_member) for item in items]


def _encoded(item: dict[str, Any]) -> str:
    return msgspec.json.encode(item).decode()


logger = structlog.get_logger(__name__)

WORK_MASTER = "workmaster"
JOB_ACCEPTANCE = "jobacceptance"
DEDUPE_MS = 90_000_000
MAX_WARNINGS = 100
KINDS = (*(kind.value for kind in ResourceKind), WORK_MASTER, JOB_ACCEPTANCE)
"""The kinds of the core; features declare further ones, which are lists."""


class SettingSource(StrEnum):
    """Where a change of station settings came from."""

    MES = "mes"
    COMMAND = "command"
    PAGE = "page"
    STATION_FILE = "station_file"


class SettingOrigin(Struct, frozen=True):
    """Where a change came from, who made it and who confirmed it, as far as known, and why."""

    source: SettingSource
    author: str = ""
    reason: str = ""
    confirmed_by: str = ""


Recorder: TypeAlias = Callable[[Store, str, Sequence[WorkMaster]], Awaitable[Commit]]
"""Returns what is written together with the Work Masters of a scope; it may be stale when they changed meanwhile."""
Examiner: TypeAlias = Callable[[Sequence[WorkMaster]], Awaitable[tuple[str, ...]]]
"""Returns what is found in Work Masters that can be stored, for the answer; it may raise Refused."""
SettingsListener: TypeAlias = Callable[[str], Awaitable[None]]
"""Called with the scope of a change; it may raise Unavailable."""
_P = TypeVar("_P", bound=Payload | Struct)


class SettingsMethod(StrEnum):
    """The operation of a configuration event (its extension `method`)."""

    PUT = "PUT"
    DELETE = "DELETE"
    GET = "GET"


class EventOrigin(Struct, frozen=True):
    """The source and id of a CloudEvent, which identify it."""

    source: str
    event_id: str


class StationSettings:
    """Stores the resources that the MES allows for each scope.

    `further` are the locations of the kinds of features, as `module:name`: each is imported when it is used.
    """

    def __init__(
        self,
        store: Store,
        further: Mapping[str, str] = {},
        dedupe_ms: int = DEDUPE_MS,
        recipe_checks: Sequence[RecipeCheck] = (),
        recorders: Sequence[Recorder] = (),
    ) -> None:
        self._store = store
        self._recipe_checks = recipe_checks
        self._recorders = recorders
        self._further = further
        self._dedupe_ms = dedupe_ms
        self.kinds = (*KINDS, *further)
        self.listeners: list[SettingsListener] = []
        self.examiners: list[Examiner] = []

    async def applied(self, origin: EventOrigin) -> tuple[str, ...] | None:
        """Return the warnings with which an event was applied before; None when it is new."""
        answer = await dedupe.load_answer(self._store, origin.source, origin.event_id)
        return dedupe.decode_answer(answer, tuple[str, ...]) if answer is not None else None

    async def apply(
        self, scope: str, kind: str, what: SettingsMethod, payload: object, origin: EventOrigin | None = None
    ) -> tuple[str, ...]:
        """Apply one configuration event and return warnings; its effect is in the store when this returns.

        An event of an `origin` is applied once. Raises Refused(`invalid_payload` or `recipe`) with every fault found,
        Unavailable when the store is gone.
        """
        noted: tuple[str, ...] | None = None
        while True:
            if origin and (known := await self.applied(origin)) is not None:
                return known
            if origin and (fault := dedupe.room_fault(self._store, caller(origin.source))):
                raise Refused("no_room", fault)
            plan, warnings = await self.plan(scope, kind, what, payload)
            if noted is None:
                noted = await self._examine(kind, what, payload)
            warnings = (*warnings, *noted)[:MAX_WARNINGS]
            if isinstance(await self._store.commit(join((plan, self._mark(origin, warnings)))), Committed):
                break
        for listener in self.listeners:
            await listener(scope)
        for warning in warnings:
            logger.warning("station setting questionable", scope=scope, kind=kind, warning=warning)
        logger.info("station settings applied", scope=scope, kind=kind, method=what)
        return warnings

    async def _examine(self, kind: str, what: SettingsMethod, payload: object) -> tuple[str, ...]:
        """Return what features find in the Work Masters of an event that is about to be stored."""
        if kind != WORK_MASTER or what is not SettingsMethod.PUT or not self.examiners:
            return ()
        masters = _many(payload, WorkMaster)
        return tuple([text for examiner in self.examiners for text in await examiner(masters)])

    def _mark(self, origin: EventOrigin | None, warnings: tuple[str, ...]) -> Commit:
        if origin is None:
            return Commit()
        answer = msgspec.json.encode(warnings).decode()
        return dedupe.mark(self._store.keys, origin.source, origin.event_id, answer, self._dedupe_ms)

    async def read(self, scope: str, kind: str, payload: object) -> object:
        """Return the stored settings of a kind, in the form in which they are sent; of Work Masters those named."""
        match kind:
            case _ if kind in self._further:
                return await read_items(self._store, self._listed(kind), payload)
            case "workmaster":
                named = [master.id for master in _many(payload, WorkMaster)] if payload else []
                masters = await resources.load_work_masters(self._store, scope)
                return [work_master for work_master in masters if not named or work_master.id in named]
            case "jobacceptance":
                limit = (await resources.load_allowed(self._store, scope)).max_job_orders
                return None if limit is None else JobAcceptance(max_job_orders=limit)
            case _:
                ids = (await resources.load_allowed(self._store, scope)).resources[ResourceKind(kind)]
                return [_item(ResourceKind(kind), identifier) for identifier in sorted(ids)]

    async def plan(
        self, scope: str, kind: str, what: SettingsMethod, payload: object
    ) -> tuple[Commit, tuple[str, ...]]:
        """Return the commit of a change that all instances see, and its warnings; raises Refused with every fault."""
        change, warnings = await self._plan(scope, kind, what, payload)
        return join((change, resources.append_change(self._store.keys, scope))), warnings

    async def _plan(
        self, scope: str, kind: str, what: SettingsMethod, payload: object
    ) -> tuple[Commit, tuple[str, ...]]:
        match kind:
            case "workmaster":
                return await self._work_masters(scope, what, _many(payload, WorkMaster))
            case "jobacceptance":
                return self._job_acceptance(scope, what, payload), ()
            case _ if kind in self._further:
                plan = plan_delete if what is SettingsMethod.DELETE else plan_put
                return await plan(self._store, self._listed(kind), payload), ()
            case _:
                return self._resources(scope, ResourceKind(kind), what, payload), ()

    def _listed(self, kind: str) -> ListedSetting:
        listed_setting: ListedSetting = pkgutil.resolve_name(self._further[kind])
        return listed_setting

    async def _work_masters(
        self, scope: str, what: SettingsMethod, masters: Sequence[WorkMaster]
    ) -> tuple[Commit, tuple[str, ...]]:
        keys = self._store.keys
        if what is SettingsMethod.DELETE:
            named = [
                master.id for master in masters if not any(validate_id(Text.of("the Work Master's ID"), master.id))
            ]
            users = await self._jobs_naming(scope, frozenset(named))
            return await resources.plan_removal(self._store, scope, named), users
        if faults := [fault for master in masters for fault in faults_of_work_master(master, self._recipe_checks)]:
            advice = "Correct the recipe; `edge check recipe` finds the same faults."
            raise Refused("recipe", join_texts("; ", faults), advice)
        recorded = [await record(self._store, scope, masters) for record in self._recorders]
        return join((*(resources.save_work_master(keys, scope, master) for master in masters), *recorded)), ()

    async def _jobs_naming(self, scope: str, work_masters: frozenset[str]) -> tuple[str, ...]:
        """Return a warning for each stored job order that has yet to start and names one of some Work Masters."""
        still_open = await jobs.load_some(self._store, await jobs.list_open(self._store, scope))
        waiting = [job for job in still_open if not job.started_at]
        return tuple(
            f"job order {job.job_id!r} names Work Master {master.id!r} and cannot start without it"
            for job in waiting
            for master in job.order.work_master_id or ()
            if master.id in work_masters
        )[:MAX_WARNINGS]

    def _job_acceptance(self, scope: str, what: SettingsMethod, payload: object) -> Commit:
        if what is SettingsMethod.DELETE:
            return resources.set_max_job_orders(self._store.keys, scope, None)
        acceptances = _many(payload, JobAcceptance)
        if len(acceptances) != 1:
            raise Refused("invalid_payload", "the payload is not one JobAcceptance", "Send one limit for the scope.")
        return resources.set_max_job_orders(self._store.keys, scope, acceptances[0].max_job_orders)

    def _resources(self, scope: str, kind: ResourceKind, what: SettingsMethod, payload: object) -> Commit:
        ids = [identifier for identifier in _ids(kind, payload) if identifier]
        if not ids:
            raise Refused(
                "invalid_payload", Text.of("the event names no {kind}", kind=kind.value), "Send its id in the payload."
            )
        change = resources.disallow if what is SettingsMethod.DELETE else resources.allow
        return change(self._store.keys, kind, scope, ids)


async def follow_settings(store: Store, listeners: Sequence[SettingsListener]) -> None:
    """Call the listeners now and with each scope whose settings any process changes, until cancelled."""
    # The position is read before the settings, so that no change during the reading is lost.
    position, changed = await resources.latest_change(store), frozenset({""})
    while True:
        for scope in changed:
            for listener in listeners:
                await listener(scope)
        position, changed = await resources.wait_for_changes(store, position)


def _ids(kind: ResourceKind, payload: object) -> Sequence[str | None]:
    match kind:
        case ResourceKind.EQUIPMENT:
            return [equipment.id for equipment in _many(payload, Equipment)]
        case ResourceKind.PERSONNEL:
            return [personnel.id for personnel in _many(payload, Personnel)]
        case ResourceKind.PHYSICAL_ASSET:
            return [asset.id for asset in _many(payload, PhysicalAsset)]
        case ResourceKind.MATERIAL_CLASS:
            return [material.material_class_id for material in _many(payload, Material)]
        case ResourceKind.MATERIAL_DEFINITION:
            return [material.material_definition_id for material in _many(payload, Material)]


def _item(kind: ResourceKind, resource_id: str) -> Equipment | Personnel | PhysicalAsset | Material:
    """Return the structure that allows a resource."""
    match kind:
        case ResourceKind.EQUIPMENT:
            return Equipment(id=resource_id)
        case ResourceKind.PERSONNEL:
            return Personnel(id=resource_id)
        case ResourceKind.PHYSICAL_ASSET:
            return PhysicalAsset(id=resource_id)
        case ResourceKind.MATERIAL_CLASS:
            return Material(material_class_id=resource_id)
        case ResourceKind.MATERIAL_DEFINITION:
            return Material(material_definition_id=resource_id)


def faults_of_work_master(master: WorkMaster, checks: Sequence[RecipeCheck] = ()) -> Sequence[str | Text]:
    """Return all faults of a Work Master, those of its recipe included; log the warnings of the recipe."""
    faults: list[str | Text] = [*validate_id(Text.of("the Work Master's ID"), master.id)]
    # The recipe has its own limits, and OPC UA does not show it.
    faults += validate_size(
        Text.of("{id}: the Work Master", id=master.id[:MAX_ID_LENGTH]), msgspec.structs.replace(master, data=None)
    )
    if is_recipe_schema(master.dataschema):
        compiled = compile_recipe(master.data, checks=checks)
        if isinstance(compiled, RejectedRecipe):
            return (*faults, *(Text.of("{master}: {fault}", master=master.id, fault=fault) for fault in compiled.texts))
        for warning in compiled.warnings:
            logger.warning("recipe", work_master=master.id, warning=warning)
    return faults


def _many(payload: object, kind: type[_P]) -> tuple[_P, ...]:
    """Read one item or a list of items."""
    listed: Any = payload if isinstance(payload, list) else [payload]
    try:
        return read_payload(listed, tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise Refused(
            "invalid_payload",
            Text.of("the payload is not of the type {name}: {reason}", name=kind.__name__, reason=error),
            "Correct it.",
        ) from None
