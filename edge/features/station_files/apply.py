"""Applies station files to a store: fills an empty one, and makes another one as the files are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from edge.access.initialization import OBJECT, REASON, Fill, FillOutcome, fill_once
from edge.access.locks import hold_lock
from edge.features.station_files.flow_plans import load_plans, plan_faults
from edge.features.station_files.folder import StationFiles, read_folder
from edge.features.station_files.objects import ObjectChange, ObjectDifference, Objects, compare
from edge.features.station_files.stored import ObjectWriter, load_objects
from edge.foundation.errors import Refused
from edge.foundation.instant import Clock
from edge.model.lock import LockKind
from edge.store import initialization
from edge.store.client import Store
from edge.store.initialization import FillState

if TYPE_CHECKING:
    from edge.features.flows.nodes.registry import NodeKinds
    from edge.features.flows.plan import Plans

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
