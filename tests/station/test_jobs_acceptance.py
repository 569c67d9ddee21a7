"""The station accepts or declines a job order, with all reasons."""

import asyncio
from collections.abc import Callable

import pytest

from edge.config import RedisSettings
from edge.model.acceptance import ResourceKind
from edge.model.isa95 import (
    Equipment,
    JobOrder,
    Material,
    OrderCall,
    Personnel,
    PhysicalAsset,
    ReturnStatus,
)
from edge.model.job_state import METHODS, Cause, JobState
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.store import ended_jobs, jobs, resources
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    all_keys,
    instance,
    obliging,
    order,
)

OK = ReturnStatus.NO_ERROR
UNKNOWN = ReturnStatus.UNKNOWN_JOB_ORDER_ID
UNABLE = ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
INVALID = ReturnStatus.INVALID_REQUEST


@pytest.mark.usefixtures("plant")
async def test_job_limit_is_freed_by_an_ended_job(redis: RedisSettings, tool: FakeEquipment, clock: Clock) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock, max_job_orders=2) as full, full.at_work():
        tool.replies = obliging
        await full.order(Cause.STORE, order("J1"))
        await full.order(Cause.STORE, order("J2"))
        declined = await full.order(Cause.STORE, order("J3"))
        assert declined.status == UNABLE
        assert "2 job orders" in str(declined.reason)
        await full.ask(Cause.START, "J1")
        await full.until_state("J1", JobState.ENDED)
        assert (await full.order(Cause.STORE, order("J3"))).status == OK


@pytest.mark.usefixtures("plant")
async def test_job_limit_is_not_exceeded_by_concurrent_orders(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock, max_job_orders=3) as full:
        answers = await asyncio.gather(*(full.order(Cause.STORE, order(f"J{number}")) for number in range(12)))
    assert sorted(answer.status for answer in answers) == [*[OK] * 3, *[UNABLE] * 9]


@pytest.mark.parametrize("frees", [Cause.CANCEL, Cause.ABORT])
async def test_job_limit_is_freed_by_a_cancelled_or_aborted_job(plant: Plant, frees: Cause) -> None:
    await plant.store.commit(resources.set_max_job_orders(plant.store.keys, SCOPE, 1))
    await plant.order(Cause.STORE, order("J1"))
    assert (await plant.order(Cause.STORE, order("J2"))).status == UNABLE
    await plant.ask(frees, "J1")
    assert (await plant.order(Cause.STORE, order("J2"))).status == OK


async def test_job_limit_can_be_set_and_removed(plant: Plant) -> None:
    await plant.store.commit(resources.set_max_job_orders(plant.store.keys, SCOPE, 0))
    assert (await plant.order(Cause.STORE, order("J1"))).status == UNABLE
    await plant.store.commit(resources.set_max_job_orders(plant.store.keys, SCOPE, None))
    assert (await plant.order(Cause.STORE, order("J1"))).status == OK


NAMED: list[tuple[ResourceKind, str, Callable[[str], JobOrder]]] = [
    (ResourceKind.EQUIPMENT, "equipment", lambda text: order("J1", equipment_requirements=(Equipment(id=text),))),
    (ResourceKind.PERSONNEL, "personnel", lambda text: order("J1", personnel_requirements=(Personnel(id=text),))),
    (
        ResourceKind.PHYSICAL_ASSET,
        "physicalasset",
        lambda text: order("J1", physical_asset_requirements=(PhysicalAsset(id=text),)),
    ),
    (
        ResourceKind.MATERIAL_CLASS,
        "materialclass",
        lambda text: order("J1", material_requirements=(Material(material_class_id=text),)),
    ),
    (
        ResourceKind.MATERIAL_DEFINITION,
        "materialdefinition",
        lambda text: order("J1", material_requirements=(Material(material_definition_id=text),)),
    ),
]


@pytest.mark.parametrize(("kind", "word", "naming"), NAMED, ids=lambda value: value if isinstance(value, str) else "")
async def test_order_with_an_unknown_resource_is_declined(
    plant: Plant, kind: ResourceKind, word: str, naming: Callable[[str], JobOrder]
) -> None:
    await plant.store.commit(resources.allow(plant.store.keys, kind, SCOPE, ["known", "also"]))
    declined = await plant.order(Cause.STORE, naming("stranger"))
    assert (declined.status, str(declined.reason)) == (UNABLE, f"{word} 'stranger' is not known to this station")
    assert await jobs.load(plant.store, "J1") is None
    assert (await plant.order(Cause.STORE, naming("known"))).status == OK
    assert (await plant.order(Cause.UPDATE, naming("stranger"))).status == UNABLE
    await plant.store.commit(resources.disallow(plant.store.keys, kind, SCOPE, ["also"]))
    assert (await plant.order(Cause.UPDATE, naming("also"))).status == UNABLE


async def test_order_with_a_work_master_unknown_in_its_scope_is_declined(plant: Plant) -> None:
    assert (await plant.order(Cause.STORE, order("J1", "stranger"))).status == UNABLE
    assert (await plant.order(Cause.STORE, order("J1"), scope="station-2")).status == UNABLE


async def test_all_unknown_resources_are_reported_in_one_answer(plant: Plant) -> None:
    strange = order("J1", "m", equipment_requirements=(Equipment(id="e"),), personnel_requirements=(Personnel(id="p"),))
    assert len((await plant.order(Cause.STORE, strange)).reasons) == 3


@pytest.mark.parametrize(
    "job_id", ["", "x" * 256, "line\nbreak", "nul\0", f"list:{SCOPE}", f"open:{SCOPE}", "changes:_global"]
)
async def test_invalid_or_reserved_job_id_is_refused(plant: Plant, job_id: str) -> None:
    await plant.order(Cause.STORE, order("J1"))
    before = await all_keys(plant.store)
    assert (await plant.order(Cause.STORE, order(job_id))).status == INVALID
    assert (await plant.order(Cause.UPDATE, order(job_id))).status == INVALID
    for method in METHODS[2:]:
        if method is not Cause.UPDATE:
            assert (await plant.ask(method, job_id)).status == UNKNOWN
    added = set(await all_keys(plant.store)) - set(before)
    answered = {plant.store.keys.event_refused_list(), plant.store.keys.counter("declined")}
    assert all(":cededupe:" in key for key in added - answered)


@pytest.mark.parametrize("priority", [10**30, -(2**15) - 1, 2**15])
async def test_a_priority_beyond_int16_is_refused(plant: Plant, priority: int) -> None:
    assert (await plant.order(Cause.STORE, order("J1", priority=priority))).status == INVALID
    assert await jobs.load(plant.store, "J1") is None


@pytest.mark.parametrize("job_id", ["a b", "a:b", "a/b/c", "%41", "größe 螺丝 🔩", "a+#", "{x}", "*", "J1/r/a/1"])
async def test_job_with_any_printable_characters_in_its_id_completes(
    plant: Plant, tool: FakeEquipment, job_id: str
) -> None:
    tool.replies = obliging
    async with plant.at_work():
        assert (await plant.order(Cause.STORE_AND_START, order(job_id))).status == OK
        await plant.until_state(job_id, JobState.ENDED)
    assert [command.job_id for command in tool.commands] == [job_id, job_id]
    assert (await plant.ask(Cause.CLEAR, job_id)).status == OK
    assert await jobs.list_ids(plant.store, SCOPE) == []


async def test_orders_are_refused_while_too_many_results_are_undelivered(plant: Plant) -> None:
    """Nothing that the MES has not read is deleted: instead no new work is accepted."""
    service = JobService(plant.store, plant.runs, 100, 60_000, max_undelivered=2)
    for number in (1, 2):
        await plant.store.commit(ended_jobs.add_undelivered(plant.store.keys, SCOPE, f"old-{number}", number))
    call = JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order("J1")), "mes", "1")
    answer = await service.call(call)
    assert answer.status is ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
    assert "2 results wait for the MES" in str(answer.reason)
    await plant.store.commit(ended_jobs.discard_kept(plant.store.keys, SCOPE, "old-1"))
    again = JobCall(SCOPE, Cause.STORE, OrderCall(job_order=order("J1")), "mes", "2")
    assert (await service.call(again)).status is ReturnStatus.NO_ERROR
