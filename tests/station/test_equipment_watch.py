"""The state of equipment is polled and written to the store for other processes, as rarely as possible."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.equipment_connection import NOT_CONNECTED_YET, ConnectionState
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.model.job_state import Cause
from edge.station.active_runs import ActiveRuns
from edge.station.equipment import Command, EquipmentAnswer
from edge.station.equipment_watch import CONFIRMED_WITHIN_MS, EquipmentWatch, WatchedEquipment, is_due
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.equipment_memory import REPORT_LIFETIME_MS
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.station.plant import (
    LINEAR,
    NOW,
    PHOTO,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    order,
    pull,
)
from tests.store.servers import own_server

WRENCH = EquipmentHealth(name="wrench", kind="fake", connected=True, connection=ConnectionState(connected=True))


async def plant_at(store: Store, tool: FakeEquipment) -> Plant:
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    return plant


@asynccontextmanager
async def watching(plant: Plant, tool: FakeEquipment, interval_s: float = 0.01) -> AsyncIterator[EquipmentWatch]:
    follower = ActiveRuns(plant.runs, (SCOPE,), poll_interval_s=0.01)
    await follower.look()
    watch = EquipmentWatch(plant.store, follower, plant.runs.clock, poll_interval_s=interval_s)
    watch.watched.append(WatchedEquipment(tool, "fake", (TIGHTEN, PHOTO), plant.answers.stats))
    async with background_task(follower.follow(), "active runs"), background_task(watch.run(), "equipment"):
        yield watch


async def test_outstanding_commands_of_an_earlier_gateway_process_are_counted(
    store: Store, wait_until: WaitUntil
) -> None:
    tool = FakeEquipment("wrench")
    before = await plant_at(store, tool)
    await before.order(Cause.STORE_AND_START, order("J1"))
    await before.drive()
    now = await plant_at(store, tool)
    async with watching(now, tool) as watch:
        await wait_until(lambda: watch.health)
        assert [device.outstanding for device in watch.health] == [1]
        await now.answers.answer(EquipmentAnswer(tool.commands[0].command_id, error="jammed"))
        await wait_until(lambda: watch.health[0].failed)
        (health,) = watch.health
    assert (health.outstanding, health.answered, health.last_error, health.last_seen) == (0, 1, "jammed", NOW)


async def test_connection_changes_are_reported_with_their_time(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    assert isinstance(plant.runs.clock, Clock)
    tool.reachable = False
    async with watching(plant, tool) as watch:
        await wait_until(lambda: watch.health)
        # Equipment that was never connected has no last seen instant.
        assert (watch.health[0].connected, watch.health[0].last_seen) == (False, None)
        tool.reachable = True
        await wait_until(lambda: watch.health[0].connected)
        assert watch.health[0].last_seen == NOW
        plant.runs.clock.now += 1000
        tool.reachable = False
        await wait_until(lambda: not watch.health[0].connected)
        assert watch.health[0].last_seen == NOW + 1000


class StartingEquipment(FakeEquipment):
    """Equipment whose first try to connect has not ended while it is not reachable."""

    @property
    def connection(self) -> ConnectionState:
        return ConnectionState(connected=True) if self.reachable else NOT_CONNECTED_YET


async def test_first_connection_is_reported_before_the_next_poll(store: Store, wait_until: WaitUntil) -> None:
    """For five seconds the equipment was not connected for no known reason, while it worked for a job."""
    tool = StartingEquipment("wrench")
    tool.reachable = False
    async with watching(await plant_at(store, tool), tool, interval_s=600.0) as watch:
        await wait_until(lambda: watch.health)
        assert watch.health[0].connected is False
        tool.reachable = True
        await wait_until(lambda: watch.health[0].connected, deadline=10.0)


async def test_reason_of_a_missing_connection_is_reported_at_once(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    await instance_leases.register(store, (SCOPE,), "edge")
    async with watching(plant, tool) as watch:
        await wait_until(lambda: watch.health and watch.health[0].connected)
        tool.reachable = False
        equipment_reports: list[EquipmentReport | None] = []

        async def read() -> None:
            equipment_reports.append((await equipment_memory.load_registered_reports(store, (SCOPE,)))["edge"])

        watch.listeners.append(read)
        expected = "not connected: refused: wrench is away"
        await wait_until(
            lambda: any(
                equipment_report and str(equipment_report.equipment[0].obstacle) == expected
                for equipment_report in equipment_reports
            )
        )


async def test_equipment_report_is_written_to_the_store(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    await instance_leases.register(store, (SCOPE,), "edge")
    reported: list[int] = []

    async with watching(plant, tool) as watch:

        async def report_text() -> None:
            reported.append(len(watch.health))

        watch.listeners.append(report_text)
        await wait_until(lambda: reported)
    equipment_reports = await equipment_memory.load_registered_reports(store, (SCOPE,))
    report = EquipmentReport(at=NOW, equipment=(msgspec.structs.replace(WRENCH, last_seen=NOW),))
    assert equipment_reports == {"edge": report}


async def test_outstanding_commands_are_counted_with_and_without_a_connection(
    store: Store, wait_until: WaitUntil
) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)

    def away(_: Command) -> None:
        raise Unavailable("it is away")

    async with plant.at_work(), watching(plant, tool) as watch:
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.commands)
        # As when its outbox is tidied.
        plant.runs.invalidate("J1")
        tool.replies = away
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await wait_until(lambda: watch.health[0].outstanding == 2)


async def test_command_answered_at_another_instance_is_not_outstanding(
    redis: RedisSettings, wait_until: WaitUntil
) -> None:
    tool = FakeEquipment("wrench")
    async with (
        instance(redis, {TIGHTEN: tool}, Clock(), consumer="edge") as plant,
        instance(redis, {TIGHTEN: tool}, Clock(), consumer="other") as other,
    ):
        await plant.teach("linear", linear(action("a", "one"), pull("b", "two")))
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.drive()
        async with watching(plant, tool) as watch:
            await wait_until(lambda: watch.health and watch.health[0].outstanding == 1)
            await other.answer(tool.commands[0])
            # The run continues and waits for an event.
            await wait_until(lambda: watch.health[0].outstanding == 0)


async def test_unreadable_run_does_not_stop_the_report(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    await store.execute("HSET", store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    async with watching(plant, tool) as watch:
        await wait_until(lambda: watch.health)
        assert watch.health[0].outstanding == 0


async def test_equipment_loss_is_reported_during_a_store_outage(tmp_path: Path, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        plant = await plant_at(store, tool)
        async with watching(plant, tool) as watch:
            await wait_until(lambda: watch.health)
            await server.kill()
            tool.reachable = False
            await wait_until(lambda: not watch.health[0].connected)


async def test_gateway_without_equipment_writes_no_report(store: Store) -> None:
    plant = await plant_at(store, FakeEquipment())
    watch = EquipmentWatch(store, ActiveRuns(plant.runs, (SCOPE,)), plant.runs.clock)
    looked = asyncio.Event()

    async def note() -> None:
        looked.set()

    watch.listeners.append(note)
    async with background_task(watch.run(), "equipment"):
        await asyncio.wait_for(looked.wait(), 60)
    assert not await store.execute("EXISTS", store.keys.health("edge"))


@pytest.mark.parametrize(
    ("change", "age", "due"),
    [
        ({}, 5000, False),
        ({}, REPORT_LIFETIME_MS // 4, True),
        ({"last_seen": 1, "answered": 7, "outstanding": 2}, 5000, False),
        ({"last_seen": 1, "answered": 7, "outstanding": 2}, 30_000, True),
        ({"connected": False}, 5000, True),
        ({"failed": 1, "last_error": "jammed"}, 5000, True),
        ({"refused": 1}, 5000, True),
    ],
)
def test_trouble_is_written_at_once_and_counts_at_intervals(change: dict[str, object], age: int, *, due: bool) -> None:
    equipment_report = EquipmentReport(at=NOW, equipment=(WRENCH,))
    report = EquipmentReport(at=NOW + age, equipment=(msgspec.structs.replace(WRENCH, **change),))
    assert is_due(equipment_report, report) is due
    assert is_due(None, report)


async def test_tool_whose_stop_is_not_confirmed_in_time_may_be_active(store: Store) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    clock = plant.runs.clock
    assert isinstance(clock, Clock)
    stop = OpenSafing(what="stop", command_id="J1/R/tighten/1", since=clock.now)
    async with watching(plant, tool) as watch:
        watch.open_safing = lambda _: (stop,)
        assert watch.maybe_active() == []
        clock.now += CONFIRMED_WITHIN_MS + 1
        assert watch.maybe_active() == ["wrench"]
        declined = OpenSafing(what="release", since=clock.now, tries=1, reason="MID 0042 declined")
        watch.open_safing = lambda _: (declined,)
        assert watch.maybe_active() == ["wrench"]


async def test_unconfirmed_release_is_a_problem_of_connected_equipment(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    declined = OpenSafing(what="release", since=NOW, tries=7, reason="MID 0042 declined")
    async with watching(plant, tool) as watch:
        watch.open_safing = lambda _: (declined,)
        await wait_until(lambda: watch.health and watch.health[0].safing)
        (health,) = watch.health
    assert health.open_safing == (declined,)
    since = "2023-11-14 22:13:20Z"
    assert (
        str(health.problem) == f"the tool may still be active, not confirmed since {since}: release: MID 0042 declined"
    )


async def test_a_stop_that_is_on_its_way_is_not_yet_a_problem(store: Store, wait_until: WaitUntil) -> None:
    """The page was red for a moment after each stop, also after that of a question to a person."""
    tool = FakeEquipment("wrench")
    plant = await plant_at(store, tool)
    clock = plant.runs.clock
    assert isinstance(clock, Clock)
    stop = OpenSafing(what="stop", command_id="J1/R/tighten/1", since=clock.now)
    async with watching(plant, tool) as watch:
        watch.open_safing = lambda _: (stop,)
        tool.problem = "seen"
        await wait_until(lambda: watch.health and watch.health[0].problem)
        assert (str(watch.health[0].problem), watch.health[0].safing) == ("seen", 0)
        clock.now += 2001
        await wait_until(lambda: watch.health[0].safing)
        assert "may still be active" in str(watch.health[0].problem)


async def test_flood_of_unsolicited_answers_is_a_problem_while_it_lasts(store: Store, wait_until: WaitUntil) -> None:
    tool = FakeEquipment()
    plant = await plant_at(store, tool)

    def is_named() -> bool:
        for _ in range(200):
            plant.answers.stats.record_unsolicited()
        return any("its broker may drop others" in str(flood) for flood in watch.floods())

    async with watching(plant, tool) as watch:
        assert watch.floods() == []
        await wait_until(is_named)
        await wait_until(lambda: watch.floods() == [])
