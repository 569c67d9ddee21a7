"""Applies station files to a store: fills an empty one, and makes another one as the files are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from edge.access.initialization import OBJECT, REASON, Fill, FillOutcome, fill_once
from edge.access.locks import hold_lock
from edge.app.documents import Described, GuardedStore
from edge.app.features import document_kinds
from edge.features.station_files.content import StationFiles, as_values, has_files, read_folder
from edge.features.station_files.documents import StationDocuments, change_setting
from edge.features.station_files.objects import (
    ObjectChange,
    ObjectDifference,
    ObjectKind,
    Objects,
    StationObject,
    compare,
)
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.lock import LockKind
from edge.station.settings import SettingsMethod
from edge.store import initialization, resources
from edge.store.client import Store
from edge.store.initialization import FillState

_BATCH = 20
"""Work Masters that are read at a time: a running gateway serves others in between."""


async def load_objects(store: Store, scopes: Iterable[str], documents: StationDocuments) -> Objects:
    """Return the objects of some scopes, and all documents of features in the store."""
    describeds: dict[StationObject, Described] = {}
    for scope in sorted(set(scopes)):
        allowed = await resources.load_allowed(store, scope)
        for resource, ids in allowed.resources.items():
            describeds |= {
                StationObject(ObjectKind(resource.value), scope, identifier): Described() for identifier in ids
            }
        if allowed.max_job_orders is not None:
            describeds[StationObject(ObjectKind.JOB_ACCEPTANCE, scope, "")] = Described(allowed.max_job_orders)
        masters = sorted(allowed.work_masters)
        for start in range(0, len(masters), _BATCH):
            for master in await resources.load_work_masters(store, scope, masters[start : start + _BATCH]):
                describeds[StationObject(ObjectKind.WORK_MASTER, scope, master.id)] = Described(as_values(master))
    for kind, of_kind in (await documents.stored(store)).items():
        describeds |= {StationObject(kind, "", id): described for id, described in (await of_kind.load(store)).items()}
    return describeds


async def load_mark(store: Store, documents: StationDocuments) -> object:
    """Return what changes with the objects of a store, without reading its Work Masters."""
    latest = await resources.latest_change(store)
    return latest, {kind: await of_kind.mark(store) for kind, of_kind in (await documents.stored(store)).items()}


class ObjectWriter:
    """Writes objects; each commit has the guard of the store."""

    def __init__(self, target: GuardedStore, documents: StationDocuments) -> None:
        self._target = target
        self._documents = documents

    async def put(self, subject: StationObject, described: Described) -> bool:
        """Write an object; return False without a write when the guard does not hold. Raises Refused for a fault."""
        if subject.kind in document_kinds():
            return await self._documents.of(subject.kind).put(self._target, subject.id, described)
        payload = _payload(subject, described.content)
        recorders = self._documents.recorders
        return await change_setting(self._target, subject.scope, subject.kind, SettingsMethod.PUT, payload, recorders)

    async def delete(self, subject: StationObject) -> bool:
        """Delete an object; return False without a write when the guard does not hold."""
        if subject.kind in document_kinds():
            return await self._documents.of(subject.kind).delete(self._target, subject.id)
        payload = None if subject.kind == ObjectKind.JOB_ACCEPTANCE else _payload(subject, None)
        return await change_setting(self._target, subject.scope, subject.kind, SettingsMethod.DELETE, payload)


def _payload(subject: StationObject, content: Any) -> object:
    """Return the payload of the event by which a MES would make the same change."""
    match subject.kind:
        case ObjectKind.JOB_ACCEPTANCE:
            return {"max_downloadable_job_orders": content}
        case ObjectKind.MATERIAL_CLASS:
            return [{"MaterialClassID": subject.id}]
        case ObjectKind.MATERIAL_DEFINITION:
            return [{"MaterialDefinitionID": subject.id}]
        case ObjectKind.WORK_MASTER:
            return [content or {"ID": subject.id}]
        case _:
            return [{"ID": subject.id}]


_WAIT_S = 15.0
"""Longer than the lease of a lock: that of a dead owner expires meanwhile."""

Report = Callable[[ObjectDifference], Awaitable[None]]
"""Called after each change."""


async def read_files(folder: Path, documents: StationDocuments) -> StationFiles:
    """Read and check a folder."""
    for kind, declared in document_kinds().items():
        if has_files(folder / declared.folder):
            await documents.of(kind).prepare()
    return await asyncio.to_thread(read_folder, folder, documents)


def all_scopes(scopes: Iterable[str], files: Objects) -> frozenset[str]:
    """Return the scopes that are compared: those of a gateway and those of its files."""
    return frozenset(scopes).union(file.scope for file in files if file.scope)


async def find_differences(
    store: Store, scopes: Iterable[str], files: Objects, documents: StationDocuments
) -> tuple[ObjectDifference, ...]:
    """Return how a store differs from files."""
    describeds = await load_objects(store, all_scopes(scopes, files), documents)
    return await asyncio.to_thread(compare, files, describeds)


async def fill_store(
    target: GuardedStore, owner: str, scopes: Sequence[str], folder: Path, documents: StationDocuments
) -> tuple[FillOutcome, int]:
    """Write the files of a folder into an empty store, unless another instance does; return how many objects it wrote.

    Raises SettingsError with all faults of the files: nothing is written then.
    """
    written = 0
    store = target.store

    async def is_empty() -> bool:
        files = (await read_files(folder, documents)).objects
        return not await load_objects(store, all_scopes(scopes, files), documents)

    async def prepare() -> Fill:
        files = (await read_files(folder, documents)).checked()
        writer = ObjectWriter(replace(target, guard=initialization.while_filling(store.keys)), documents)

        async def fill() -> None:
            nonlocal written
            for difference in await find_differences(store, scopes, files, documents):
                # What was changed since the filling began is a decision of a user: it shows as a difference.
                if difference.change is ObjectChange.MISSING:
                    written += await writer.put(difference.subject, files[difference.subject])

        return fill

    return await fill_once(store, owner, is_empty, prepare), written


async def apply_files(
    target: GuardedStore,
    owner: str,
    scopes: Sequence[str],
    read: StationFiles,
    documents: StationDocuments,
    report: Report,
    *,
    delete: bool,
) -> None:
    """Apply files to a store: it is as they are afterwards; what is not in the files is deleted only if asked.

    Raises SettingsError with all faults of the files: nothing is written then; Refused without files, and while another
    process applies files.
    """
    files = read.checked()
    if not files:  # with `delete` nothing would be left of the station
        advice = "`edge station export FOLDER` writes those of the store."
        raise Refused("station", Text.of("{folder}: there are no station files", folder=read.folder), advice)
    store = target.store
    async with hold_lock(store, LockKind.STATION, OBJECT, owner, REASON, wait_s=_WAIT_S):
        state = await initialization.load_state(store)
        if state is FillState.ABSENT:
            await store.commit(initialization.begin(store.keys))
        writer = ObjectWriter(target, documents)
        for object_difference in await find_differences(store, scopes, files, documents):
            if object_difference.change is not ObjectChange.EXTRA:
                await writer.put(object_difference.subject, files[object_difference.subject])
                await report(object_difference)
            elif delete:
                await writer.delete(object_difference.subject)
                await report(object_difference)
        if state is not FillState.FILLED:
            await store.commit(initialization.end(store.keys))
