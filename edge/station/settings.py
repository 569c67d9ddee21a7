"""Applies station settings that the MES pushes: what a scope may use, and its work masters."""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
import structlog

from edge.errors import Refused
from edge.model.acceptance import MAX_ID_LENGTH, JobAcceptance, ResourceKind, validate_id, validate_size
from edge.model.isa95 import Equipment, Material, Payload, Personnel, PhysicalAsset, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.sfc.compiler import Rejected, compile_recipe
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import Commit, Stale, join

logger = structlog.get_logger(__name__)

WORK_MASTER = "workmaster"
JOB_ACCEPTANCE = "jobacceptance"
KINDS = (*(kind.value for kind in ResourceKind), WORK_MASTER, JOB_ACCEPTANCE)

_P = TypeVar("_P", bound=Payload | msgspec.Struct)


class SettingsMethod(StrEnum):
    """What to do with what a configuration event holds (its extension `method`)."""

    PUT = "PUT"
    DELETE = "DELETE"


class StationSettings:
    """Keeps what the MES lets each scope use."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.listeners: list[Callable[[str], Awaitable[None]]] = []

    async def apply(self, scope: str, kind: str, what: SettingsMethod, payload: object) -> None:
        """Apply one configuration event; it is in the store when this returns.

        Raises Refused(`invalid_payload` or `recipe`) with every fault found, Unavailable when the store is gone.
        """
        while isinstance(await self._store.commit(await self._plan(scope, kind, what, payload)), Stale):
            pass
        for watch in self.listeners:
            await watch(scope)
        logger.info("station settings applied", scope=scope, kind=kind, method=what)

    async def _plan(self, scope: str, kind: str, what: SettingsMethod, payload: object) -> Commit:
        match kind:
            case "workmaster":
                return await self._work_masters(scope, what, _many(payload, WorkMaster))
            case "jobacceptance":
                return self._job_acceptance(scope, what, payload)
            case _:
                return self._resources(scope, ResourceKind(kind), what, payload)

    async def _work_masters(self, scope: str, what: SettingsMethod, masters: Sequence[WorkMaster]) -> Commit:
        keys = self._store.keys
        if what is SettingsMethod.DELETE:
            named = [master.id for master in masters if not any(validate_id("the Work Master's ID", master.id))]
            return await resources.plan_removal(self._store, scope, named)
        if faults := [fault for master in masters for fault in _faults_of(master)]:
            raise Refused("recipe", "; ".join(faults), "Correct the recipe; `edge check recipe` finds the same faults.")
        return join(resources.save_work_master(keys, scope, master) for master in masters)

    def _job_acceptance(self, scope: str, what: SettingsMethod, payload: object) -> Commit:
        if what is SettingsMethod.DELETE:
            return resources.set_max_job_orders(self._store.keys, scope, None)
        acceptances = _many(payload, JobAcceptance)
        if len(acceptances) != 1:
            raise Refused("invalid_payload", "the payload is not one JobAcceptance", "Send one limit for the scope.")
        return resources.set_max_job_orders(self._store.keys, scope, acceptances[0].max_job_orders)

    def _resources(self, scope: str, kind: ResourceKind, what: SettingsMethod, payload: object) -> Commit:
        ids = [each for each in _ids(kind, payload) if each]
        if not ids:
            raise Refused("invalid_payload", f"the event names no {kind.value}", "Send its id in the payload.")
        change = resources.disallow if what is SettingsMethod.DELETE else resources.allow
        return change(self._store.keys, kind, scope, ids)


def _ids(kind: ResourceKind, payload: object) -> Sequence[str | None]:
    match kind:
        case ResourceKind.EQUIPMENT:
            return [each.id for each in _many(payload, Equipment)]
        case ResourceKind.PERSONNEL:
            return [each.id for each in _many(payload, Personnel)]
        case ResourceKind.PHYSICAL_ASSET:
            return [each.id for each in _many(payload, PhysicalAsset)]
        case ResourceKind.MATERIAL_CLASS:
            return [each.material_class_id for each in _many(payload, Material)]
        case ResourceKind.MATERIAL_DEFINITION:
            return [each.material_definition_id for each in _many(payload, Material)]


def _faults_of(master: WorkMaster) -> Sequence[str]:
    faults = list(validate_id("the Work Master's ID", master.id))
    # Its recipe has limits of its own, and is not shown in OPC UA.
    faults += validate_size(f"{master.id[:MAX_ID_LENGTH]}: the Work Master", msgspec.structs.replace(master, data=None))
    if master.dataschema == RECIPE_DATASCHEMA:
        compiled = compile_recipe(master.data)
        if isinstance(compiled, Rejected):
            return (*faults, *(f"{master.id}: {fault}" for fault in compiled.faults))
        for warning in compiled.warnings:
            logger.warning("recipe", work_master=master.id, warning=warning)
    return faults


def _many(payload: object, kind: type[_P]) -> tuple[_P, ...]:
    """Read one item or a list of them."""
    listed: Any = payload if isinstance(payload, list) else [payload]
    try:
        return msgspec.convert(listed, tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise Refused("invalid_payload", f"the payload is no {kind.__name__}: {error}", "Correct it.") from None
