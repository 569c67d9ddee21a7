"""Active runs are followed across all instances, with as few reads of the store as possible."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from edge.access.mode import ModeWatch
from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.model.plant import Maintenance, MaintenanceKind
from edge.station.active_runs import ActiveRuns, MaintenancePause
from edge.station.decision import LoadedJob
from edge.station.runs import Runs
from edge.store import mode
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.store.runs import revisions
from tests.conftest import WaitUntil
from tests.station.plant import (
    LINEAR,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    instance,
    none_active,
    obliging,
    order,
    until,
)
from tests.store.servers import own_server

Recorder = list[tuple[int | None, int | None]]
"""The revisions of a run as it was known and as it is, move by move."""


def recorder_of(follower: ActiveRuns) -> Recorder:
    reported: Recorder = []

    def note(before: LoadedJob | None, now: LoadedJob | None) -> None:
        reported.append((before.stored.revision if before else None, now.stored.revision if now else None))

    follower.listeners.append(note)
    return reported


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_own_decision_is_loaded_at_once_until_its_run_is_removed(
    store: Store, tool: FakeEquipment, clock: Clock
) -> None:
    plant = Plant(store, {TIGHTEN: tool}, clock)
    await plant.teach("linear", LINEAR)
    follower = ActiveRuns(plant.runs, (SCOPE,))
    reported = recorder_of(follower)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    assert (list(follower.loaded), follower.count) == (["J1"], 1)
    await plant.answer(tool.commands[0])
    await plant.drive()
    await plant.answer(tool.commands[1])
    assert (follower.loaded, follower.count) == ({}, 0)
    first = reported[0][1]
    assert first is not None
    assert reported == [(None, first), (first, first + 1), (first + 1, None)]


async def test_ended_run_stays_active_until_all_its_commands_are_sent(
    store: Store, tool: FakeEquipment, clock: Clock
) -> None:
    plant = Plant(store, {TIGHTEN: tool}, clock)
    await plant.teach("linear", LINEAR)
    follower = ActiveRuns(plant.runs, (SCOPE,))
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    tool.replies = obliging
    await plant.ask(Cause.ABORT, "J1")
    await follower.look()
    assert follower.loaded["J1"].job.status.state is JobState.ABORTED
    async with plant.at_work():
        await until(lambda: none_active(plant))
    await follower.look()
    assert (follower.loaded, follower.count) == ({}, 0)


async def test_runs_of_another_instance_are_loaded_at_the_next_poll(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        instance(redis, {}, clock, consumer="edge") as plant,
    ):
        await other.teach("linear", LINEAR)
        follower = ActiveRuns(plant.runs, (SCOPE,))
        reported = recorder_of(follower)
        await other.order(Cause.STORE_AND_START, order("J1"))
        await other.drive()
        await follower.look()
        assert [association.step for association in follower.loaded["J1"].stored.run.associations.values()] == ["one"]
        for command in range(2):
            await other.answer(tool.commands[command])
            await other.drive()
            await follower.look()
        assert follower.loaded == {}
    assert [(before is None, now is None) for before, now in reported] == [(True, False), (False, False), (False, True)]


class Noting(Runs):
    """Notes which runs were read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock, keep_ended_ms=60_000)
        self.read: list[str] = []

    async def load(self, job_id: str) -> LoadedJob | None:
        self.read.append(job_id)
        return await super().load(job_id)


@pytest.mark.parametrize(("scope", "readings"), [(SCOPE, ["J1", "J1"]), ("station-9", ["J1"])])
async def test_only_changed_runs_of_own_scopes_are_read(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil, scope: str, readings: list[str]
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as other, other.at_work():
        await other.teach("linear", LINEAR)
        await other.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.received() == ["a"])
        async with open_store(redis, "edge-2") as store:
            runs = Noting(store, clock)
            follower = ActiveRuns(runs, (scope,))
            await follower.look()
            before = await revisions(store)
            await other.answer(tool.commands[0])
            await wait_until(lambda: tool.received() == ["a", "b"])
            assert await revisions(store) != before
            for _ in range(3):
                await follower.look()
            assert runs.read == readings
    assert follower.count == 1
    assert follower.loaded.keys() == ({"J1"} if scope == SCOPE else set())


async def test_unreadable_run_does_not_hide_others_and_is_read_once(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.teach("linear", LINEAR)
        for job_id in ("J1", "J2"):
            await other.order(Cause.STORE_AND_START, order(job_id))
        await other.drive()
        await other.store.execute("HSET", other.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
        async with open_store(redis, "edge-2") as store:
            runs = Noting(store, clock)
            follower = ActiveRuns(runs, (SCOPE,))
            for _ in range(2):
                await follower.look()
    assert (list(follower.loaded), follower.count, sorted(runs.read)) == (["J2"], 2, ["J1", "J2"])


async def test_polling_continues_after_a_store_outage(
    tmp_path: Path, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with own_server(tmp_path) as server:
        redis = RedisSettings(url=server.url)
        async with (
            instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
            instance(redis, {}, clock, consumer="edge") as plant,
        ):
            await other.teach("linear", LINEAR)
            follower = ActiveRuns(plant.runs, (SCOPE,), poll_interval_s=0.01)
            with capture_logs() as logs:
                async with background_task(follower.follow(), "active runs"):
                    await server.kill()
                    await wait_until(lambda: logs)
                    await server.start()
                    await other.order(Cause.STORE_AND_START, order("J1"))
                    await other.drive()
                    await wait_until(lambda: "J1" in follower.loaded)
    assert "store unavailable, retrying" in {entry["event"] for entry in logs}


async def test_run_with_an_invalid_revision_is_skipped(store: Store, tool: FakeEquipment, clock: Clock) -> None:
    plant = Plant(store, {TIGHTEN: tool}, clock)
    await plant.teach("linear", LINEAR)
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job_id))
    await plant.drive()
    await store.execute("HSET", store.keys.sfc_execution("J1"), "rev", "many")
    other = ActiveRuns(Runs(store, clock, keep_ended_ms=60_000), (SCOPE,))
    await other.look()
    assert list(other.loaded) == ["J2"]


async def test_a_defect_in_one_listener_affects_no_other(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    def fail(_before: LoadedJob | None, _now: LoadedJob | None) -> None:
        raise RuntimeError("a chart cannot be drawn")

    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        instance(redis, {}, clock, consumer="edge") as plant,
    ):
        await other.teach("linear", LINEAR)
        follower = ActiveRuns(plant.runs, (SCOPE,))
        follower.listeners.append(fail)
        reported = recorder_of(follower)
        await other.order(Cause.STORE_AND_START, order("J1"))
        await other.drive()
        with capture_logs() as logged:
            await follower.look()
    assert len(reported) == 1
    assert [entry["event"] for entry in logged] == ["listener failed"]


async def switched(plant: Plant, to: Maintenance | None) -> ModeWatch:
    watch = ModeWatch(plant.store, "gw-1")
    await plant.store.commit(mode.save(plant.store.keys, await mode.load(plant.store, "gw-1"), "", to))
    await watch.refresh()
    return watch


async def test_running_job_is_paused_once_by_mode_now(running: Plant) -> None:
    active = ActiveRuns(running.runs, (SCOPE,))
    await active.look()
    watch = await switched(running, Maintenance(kind=MaintenanceKind.NOW, message="fire"))
    pause = MaintenancePause(running.runs, active.loaded, watch, 0.01)
    async with background_task(pause.run(), "pause"):
        job = await running.until_state("J1", JobState.INTERRUPTED)
    assert [localized_text.text for localized_text in job.comment] == ["fire"]
    await pause.pause_running()
    assert (await running.job("J1")).revision == job.revision
    await switched(running, None)
    assert (await running.job("J1")).status.state is JobState.INTERRUPTED
    await running.ask(Cause.RESUME, "J1")
    assert (await running.job("J1")).status.state is JobState.RUNNING


async def test_running_job_continues_in_drain_mode(running: Plant) -> None:
    active = ActiveRuns(running.runs, (SCOPE,))
    await active.look()
    await MaintenancePause(running.runs, active.loaded, await switched(running, Maintenance())).pause_running()
    assert (await running.job("J1")).status.state is JobState.RUNNING
