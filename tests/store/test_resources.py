"""Allowed resources are stored per scope."""

import pytest

from edge.model.acceptance import Allowed, ResourceKind
from edge.model.isa95 import Equipment, JobOrder, LocalizedText, Personnel, WorkMaster
from edge.store import resources
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.resources import RULES, TAGS, SettingTexts, StoredTexts
from tests.store.work_masters import work_master

MASTER = WorkMaster(id="axle", description=LocalizedText(text="Größe"), data={"steps": [{"name": "a"}]}, dataschema="x")


async def test_a_scope_without_settings_allows_nothing(store: Store) -> None:
    allowed = await resources.load_allowed(store, "station-1")
    assert allowed == Allowed(resources={kind: frozenset() for kind in ResourceKind})
    assert await resources.load_work_masters(store, "station-1") == []


async def test_allowed_resources_of_a_scope_are_read_together(store: Store) -> None:
    keys = store.keys
    await store.commit(resources.save_work_master(keys, "station-1", MASTER))
    await store.commit(resources.allow(keys, ResourceKind.EQUIPMENT, "station-1", ["e1", "e2"]))
    await store.commit(resources.allow(keys, ResourceKind.PERSONNEL, "station-2", ["p"]))
    await store.commit(resources.set_max_job_orders(keys, "station-1", 0))
    allowed = await resources.load_allowed(store, "station-1")
    assert allowed.work_masters == {"axle"}
    assert allowed.resources[ResourceKind.EQUIPMENT] == {"e1", "e2"}
    assert allowed.resources[ResourceKind.PERSONNEL] == frozenset()
    assert allowed.max_job_orders == 0


async def test_only_named_ids_of_long_lists_are_read(store: Store) -> None:
    keys, kind = store.keys, ResourceKind.EQUIPMENT
    await store.commit(resources.save_work_master(keys, "station-1", MASTER))
    await store.commit(resources.allow(keys, kind, "station-1", [f"e{number}" for number in range(5000)]))
    await store.commit(resources.set_max_job_orders(keys, "station-1", 7))
    order = JobOrder(
        job_order_id="J1",
        work_master_id=(WorkMaster(id="axle"), WorkMaster(id="other")),
        equipment_requirements=(Equipment(id="e4999"), Equipment(id="e5000")),
        personnel_requirements=(Personnel(id="anna"),),
    )
    query = resources.query_named(keys, "station-1", order)
    nothing = dict.fromkeys(ResourceKind, frozenset[str]())
    assert await store.fetch(query) == Allowed(
        work_masters=frozenset({"axle"}), resources={**nothing, kind: frozenset({"e4999"})}, max_job_orders=7
    )
    assert all(command[0] != "SMEMBERS" for command in query.commands)


async def test_order_that_names_nothing_is_answered_by_the_limit_alone(store: Store) -> None:
    query = resources.query_named(store.keys, "station-1", JobOrder(job_order_id="J1"))
    assert [command[0] for command in query.commands] == ["GET"]
    assert await store.fetch(query) == Allowed(resources=dict.fromkeys(ResourceKind, frozenset()))


async def test_a_work_master_is_read_back_whole(store: Store) -> None:
    await store.commit(resources.save_work_master(store.keys, "station-1", MASTER))
    assert await work_master(store, "axle") == MASTER
    assert await resources.load_work_masters(store, "station-1") == [MASTER]
    assert await work_master(store, "other") is None


async def test_removed_work_master_is_not_found(store: Store) -> None:
    await store.commit(resources.save_work_master(store.keys, "station-1", MASTER))
    await store.commit(await resources.plan_removal(store, "station-1", ["axle"]))
    assert await work_master(store, "axle") is None
    assert (await resources.load_allowed(store, "station-1")).work_masters == frozenset()


async def test_a_work_master_s_revision_counts_its_changes(store: Store) -> None:
    revisions = []
    for _ in range(3):
        await store.commit(resources.save_work_master(store.keys, "station-1", MASTER))
        revisions.append(int(await store.execute("HGET", store.keys.workmaster("axle"), "rev")))
    assert revisions == list(range(revisions[0], revisions[0] + 3))


async def test_a_work_master_removed_from_one_scope_stays_in_the_other(store: Store) -> None:
    for scope in ("station-1", "station-2"):
        await store.commit(resources.save_work_master(store.keys, scope, MASTER))
    await store.commit(await resources.plan_removal(store, "station-1", ["axle", "axle", "unknown"]))
    assert (await resources.load_allowed(store, "station-1")).work_masters == frozenset()
    assert await resources.load_work_masters(store, "station-2") == [MASTER]
    await store.commit(await resources.plan_removal(store, "station-2", ["axle"]))
    assert await store.execute("EXISTS", store.keys.workmaster("axle")) == 0


async def test_removal_planned_before_a_concurrent_write_is_stale(store: Store) -> None:
    await store.commit(resources.save_work_master(store.keys, "station-1", MASTER))
    planned = await resources.plan_removal(store, "station-1", ["axle"])
    await store.commit(resources.save_work_master(store.keys, "station-2", MASTER))
    assert isinstance(await store.commit(planned), Stale)
    assert await resources.load_work_masters(store, "station-2") == [MASTER]


async def test_unreadable_work_master_does_not_hide_others(store: Store) -> None:
    for master in (MASTER, WorkMaster(id="wheel")):
        await store.commit(resources.save_work_master(store.keys, "station-1", master))
    await store.execute("HSET", store.keys.workmaster("wheel"), "scope:station-1", "{")
    assert await resources.load_work_masters(store, "station-1") == [MASTER]


@pytest.mark.parametrize("kept", [RULES, TAGS])
async def test_texts_are_kept_by_their_names_under_a_revision(store: Store, kept: SettingTexts) -> None:
    empty = await kept.load(store)
    assert (empty, await kept.count_without(store, ["a"])) == (StoredTexts(), (0, 0))
    saved = kept.save(store.keys, 0, {"b": "2", "rev": "1", "a": "3"})
    assert isinstance(await store.commit(saved), Committed)
    assert isinstance(await store.commit(saved), Stale)
    stored_texts = await kept.load(store)
    assert stored_texts == StoredTexts(1, {"a": "3", "b": "2", "rev": "1"})
    assert await kept.count_without(store, ["b", "none"]) == (1, 2)
    await store.commit(kept.save(store.keys, 1, {"a": None, "none": None}))
    assert await kept.load(store) == StoredTexts(2, {"b": "2", "rev": "1"})
    assert await kept.revision(store) == 2


async def test_rules_and_tags_of_one_name_are_stored_separately(store: Store) -> None:
    await store.commit(RULES.save(store.keys, 0, {"x": "rule"}))
    await store.commit(TAGS.save(store.keys, 0, {"x": "tag"}))
    assert ((await RULES.load(store)).texts, (await TAGS.load(store)).texts) == ({"x": "rule"}, {"x": "tag"})
