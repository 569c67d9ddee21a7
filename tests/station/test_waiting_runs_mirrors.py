"""Runs with conditions on members of a mirrored set continue when the copy of the set changes."""

from typing import Any

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.isa95 import Parameter
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import NO_MIRRORS
from edge.sfc.waiting import explain_waiting
from edge.station.active_runs import ActiveRuns
from edge.station.stored_job import load
from edge.station.waiting_runs import MirrorWatch
from edge.store import set_mirrors as mirrors
from edge.store.set_mirrors import Freshness
from tests.station.plant import MIRRORS, SCOPE, Clock, FakeEquipment, Plant, action, instance, linear, obliging, order
from tests.station.replaying import differing_replays

IN = "carrier in mirrors.carriers"


def gated(condition: str) -> dict[str, Any]:
    recipe: dict[str, Any] = linear(action("a", "one"), action("b", "two"))
    recipe["transitions"][0]["condition"] = condition
    return recipe


async def store_copy(plant: Plant, *members: str, at: int = 1) -> None:
    await plant.store.commit(mirrors.save(plant.store.keys, "carriers", members, at))


async def waiting_job(plant: Plant, tool: FakeEquipment, condition: str = IN) -> MirrorWatch:
    """Return the watch of a plant whose job J1 has done its first step, of the carrier C7."""
    tool.replies = obliging
    active = ActiveRuns(plant.runs, (SCOPE,))
    watch = MirrorWatch(plant.runs, active, MIRRORS)
    await plant.teach("gated", gated(condition))
    carrier = Parameter(id="carrier", value="C7")
    await plant.order(Cause.STORE_AND_START, order("J1", "gated", job_order_parameters=(carrier,)))
    await plant.drive()
    assert tool.received() == ["a"]
    return watch


async def revision(plant: Plant) -> int:
    loaded = await plant.runs.get("J1")
    assert loaded
    return loaded.stored.revision


async def test_job_waits_until_its_member_joins(plant: Plant, tool: FakeEquipment) -> None:
    watch = await waiting_job(plant, tool)
    await watch.look()
    await store_copy(plant, "C1")
    before = await revision(plant)
    for _ in range(3):
        await watch.look()
    # A wait writes nothing.
    assert await revision(plant) == before
    await store_copy(plant, "C1", "C7", at=2)
    await watch.look()
    await plant.drive()
    assert tool.received() == ["a", "b"]
    assert (await plant.job("J1")).status.state is JobState.ENDED
    assert [replay async for replay in differing_replays(plant.store)] == []


async def test_job_continues_at_once_with_a_fresh_copy(plant: Plant, tool: FakeEquipment) -> None:
    await store_copy(plant, "C7")
    watch = await waiting_job(plant, tool)
    await watch.look()
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_stale_copy_is_used_unless_the_condition_excludes_it(plant: Plant, tool: FakeEquipment) -> None:
    watch = await waiting_job(plant, tool, f"{IN} and not mirrors.carriers.stale")
    await store_copy(plant, "C7")
    await plant.store.commit(mirrors.save_state(plant.store.keys, "carriers", Freshness.STALE, 2))
    await watch.look()
    assert tool.received() == ["a"]
    stored_job = await load(plant.store, "J1")
    assert stored_job.net
    assert stored_job.run
    why = "; ".join(
        map(str, explain_waiting(stored_job.net, stored_job.run, 0, stored_job.holders, stored_job.mirrors))
    )
    assert "not mirrors.carriers.stale: mirrors.carriers.stale is true" in why
    await plant.store.commit(mirrors.save_state(plant.store.keys, "carriers", Freshness.CURRENT, 3))
    await watch.look()
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_expired_copy_is_unknown(plant: Plant, tool: FakeEquipment) -> None:
    clock = [0.0]
    await waiting_job(plant, tool)
    active = ActiveRuns(plant.runs, (SCOPE,))
    await active.look()
    watch = MirrorWatch(plant.runs, active, MIRRORS, monotonic=lambda: clock[0])
    await store_copy(plant, "C1")
    await watch.look()
    assert set(plant.runs.mirrors()) == {"carriers"}
    clock[0] = 3.1
    assert plant.runs.mirrors() is NO_MIRRORS


async def test_stored_copy_is_discarded_at_the_start(plant: Plant, tool: FakeEquipment) -> None:
    await store_copy(plant, "C7")
    watch = await waiting_job(plant, tool)
    async with background_task(watch.run(), "mirrors"), plant.at_work():
        # The gateway that reads the mirror writes its state again within a second.
        while await mirrors.load_states(plant.store, MIRRORS):
            await plant.drive()
        assert tool.received() == ["a"]
        await store_copy(plant, "C7", at=2)
        await plant.until_state("J1", JobState.ENDED)


async def test_paused_job_continues_at_resume(plant: Plant, tool: FakeEquipment) -> None:
    watch = await waiting_job(plant, tool)
    await plant.ask(Cause.PAUSE, "J1")
    await store_copy(plant, "C7")
    await watch.look()
    assert tool.received() == ["a"]
    await plant.ask(Cause.RESUME, "J1")
    await plant.drive()
    assert tool.received() == ["a", "b"]


async def test_two_gateways_continue_a_job_once(
    plant: Plant, tool: FakeEquipment, redis: RedisSettings, clock: Clock
) -> None:
    watch = await waiting_job(plant, tool)
    async with instance(redis, {"tighten.v1": tool}, clock, consumer="other") as other:
        active = ActiveRuns(other.runs, (SCOPE,))
        await active.look()
        second = MirrorWatch(other.runs, active, MIRRORS)
        before = await revision(plant)
        await store_copy(plant, "C7")
        await second.look()
        await watch.look()
        assert (await load(plant.store, "J1")).run
        for item in (plant, other, plant):
            await item.drive()
    assert tool.received() == ["a", "b"]
    loaded_job = await plant.runs.load("J1")
    assert loaded_job
    assert loaded_job.stored.revision == before + 2
    assert [replay async for replay in differing_replays(plant.store)] == []


async def test_job_with_an_unconfigured_mirror_is_aborted(plant: Plant) -> None:
    await plant.teach("gated", gated("carrier in mirrors.pallets"))
    await plant.order(Cause.STORE_AND_START, order("J1", "gated"))
    await plant.drive()
    job = await plant.job("J1")
    assert job.status.state is JobState.ABORTED
    assert "[mirror.pallets]" in str(job.error)
