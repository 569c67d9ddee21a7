"""Revisions of Work Masters: one for each change, none for the same, bounded, with who and why."""

from collections.abc import Sequence
from functools import partial

import msgspec
import pytest

from edge.app.features import work_master_recorders
from edge.config import Settings
from edge.features.recipes.revisions import load_revision, load_revisions, plan_revisions, recipe_hash
from edge.model.isa95 import WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.station.settings import SettingOrigin, SettingsMethod, SettingSource, StationSettings
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from tests.sfc.recipes import chain

SCOPE = "station-1"
BY_ANNA = SettingOrigin(SettingSource.COMMAND, "anna", "torque")


def master(*steps: str) -> WorkMaster:
    return WorkMaster(id="WM", data=chain(" ".join(steps)), dataschema=RECIPE_DATASCHEMA)


async def put(store: Store, masters: Sequence[WorkMaster], settings: Settings | None = None) -> None:
    record = partial(plan_revisions, settings or Settings(), BY_ANNA)
    payload = msgspec.json.decode(msgspec.json.encode(masters))
    await StationSettings(store, recorders=[record]).apply(SCOPE, "workmaster", SettingsMethod.PUT, payload)


async def test_each_change_is_a_revision_with_author_and_reason(store: Store) -> None:
    await put(store, [master("A")])
    await put(store, [master("A", "B")])
    newest, first = await load_revisions(store, SCOPE, "WM")
    assert (newest.number, first.number) == (2, 1)
    assert (newest.source, newest.author, newest.reason) == (SettingSource.COMMAND, "anna", "torque")
    released = await load_revision(store, SCOPE, "WM")
    assert released is not None
    assert released.work_master == master("A", "B")
    assert newest.hash == recipe_hash(master("A", "B")) != first.hash


async def test_gateway_commands_and_station_files_record_with_the_feature(store: Store) -> None:
    (record,) = work_master_recorders(Settings(), SettingOrigin(SettingSource.MES))
    await store.commit(await record(store, SCOPE, [master("A")]))
    (revision,) = await load_revisions(store, SCOPE, "WM")
    assert (revision.source, revision.author) == (SettingSource.MES, "")


async def test_identical_work_master_makes_no_revision(store: Store) -> None:
    await put(store, [master("A")])
    await put(store, [master("A")])
    assert [revision.number for revision in await load_revisions(store, SCOPE, "WM")] == [1]


async def test_oldest_revision_goes_beyond_the_bound(store: Store) -> None:
    settings = msgspec.convert({"sections": {}}, Settings)
    for number in range(53):
        await put(store, [master(*(f"S{n}" for n in range(number + 1)))], settings)
    numbers = [revision.number for revision in await load_revisions(store, SCOPE, "WM")]
    assert (numbers[0], numbers[-1], len(numbers)) == (53, 4, 50)
    assert await load_revision(store, SCOPE, "WM", 3) is None


async def test_two_writers_at_once_never_share_a_number(store: Store) -> None:
    plans = [await plan_revisions(Settings(), BY_ANNA, store, SCOPE, [master(name)]) for name in ("A", "B")]
    results = [await store.commit(plan) for plan in plans]
    assert isinstance(results[0], Committed)
    assert isinstance(results[1], Stale)


@pytest.mark.parametrize("other", [{"b": 1, "a": 2}])
def test_hash_ignores_the_order_of_members(other: dict[str, int]) -> None:
    ordered = WorkMaster(id="WM", data=dict(sorted(other.items())))
    assert recipe_hash(WorkMaster(id="WM", data=other)) == recipe_hash(ordered)
