"""The charts of runs for OPC UA clients: runs that are already active, each change, and the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.station.active_runs import ActiveRuns, LockHolders
from edge.uaserver.charts import Charts, show_charts, view
from edge.uaserver.view import ActionView, ChartView, StepView
from tests.conftest import WaitUntil
from tests.station.plant import (
    LINEAR,
    NOW,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    obliging,
    order,
)


class Screen:
    """A fake of the charts of the OPC UA server: it records the shown and hidden runs."""

    def __init__(self) -> None:
        self.shown: dict[tuple[str, str], Callable[[], ChartView]] = {}
        self.hidden: list[str] = []

    def show(self, scope: str, job_order_id: str, look: Callable[[], ChartView]) -> None:
        self.shown[scope, job_order_id] = look

    def hide(self, scope: str, job_order_id: str) -> None:
        self.shown.pop((scope, job_order_id), None)
        self.hidden.append(job_order_id)


@asynccontextmanager
async def showing(plant: Plant, screen: Screen) -> AsyncIterator[ActiveRuns]:
    active = ActiveRuns(plant.runs, (SCOPE,), listened_poll_interval_s=0.02)
    await active.look()
    holders = LockHolders(plant.store, active, every_s=0.02)
    show_charts(active, cast("Charts", screen), plant.runs.clock, holders)
    followed = background_task(active.follow(), "active runs")
    async with followed, background_task(holders.follow(), "lock holders"):
        yield active


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_a_run_is_shown_from_its_start_to_its_end(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as plant, showing(plant, screen), plant.at_work():
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.received() == ["a"])
        clock.now += 1500
        drawn = screen.shown[SCOPE, "J1"]()
        assert (drawn.recipe, drawn.state, drawn.started_at, drawn.error) == ("linear", "running", NOW, "")
        assert drawn.steps == {"one": StepView(active=True, elapsed_ms=1500, count=1), "two": StepView()}
        assert drawn.actions == {"a@one": ActionView("dispatched", 1), "b@two": ActionView("pending")}
        assert drawn.waiting == (
            "one → two [always] waits for steps.one.done: a is dispatched",
            "action a of one is dispatched, for 1.5 s",
        )
        await plant.answer(tool.commands[0], {"torque": 85.2})
        await wait_until(lambda: tool.received() == ["a", "b"])
        drawn = screen.shown[SCOPE, "J1"]()
        assert drawn.steps["two"].active
        assert drawn.actions["a@one"] == ActionView("completed", 1, {"torque": 85.2})
        await plant.ask(Cause.PAUSE, "J1")
        assert screen.shown[SCOPE, "J1"]().state == "paused"
        await plant.ask(Cause.RESUME, "J1")
        await plant.answer(tool.commands[-1])
        await plant.until_state("J1", JobState.ENDED)
        await wait_until(lambda: screen.shown == {})


async def test_active_runs_of_an_earlier_process_are_shown_at_start(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as first, first.at_work():
        await first.teach("linear", LINEAR)
        await first.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.received() == ["a"])
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as second, showing(second, screen):
        await wait_until(lambda: screen.shown)
        assert screen.shown[SCOPE, "J1"]().actions["a@one"].state == "dispatched"
        tool.replies = obliging
        async with second.at_work():
            await second.ask(Cause.ABORT, "J1")
            await wait_until(lambda: screen.shown == {})


async def test_run_advanced_by_another_instance_is_shown_with_its_new_state(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    screen = Screen()
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        instance(redis, {}, clock, consumer="edge") as plant,
        showing(plant, screen),
        other.at_work(),
    ):
        await other.teach("linear", LINEAR)
        await other.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: (SCOPE, "J1") in screen.shown)
        await wait_until(lambda: tool.received() == ["a"])
        await other.answer(tool.commands[0])
        await wait_until(lambda: screen.shown[SCOPE, "J1"]().steps["two"].active)
        await other.answer(tool.commands[1])
        await wait_until(lambda: screen.shown == {})


async def test_job_stored_again_with_another_recipe_gets_a_new_chart(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    screen = Screen()
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        instance(redis, {}, clock, consumer="edge") as plant,
        other.at_work(),
    ):
        active = ActiveRuns(plant.runs, (SCOPE,), listened_poll_interval_s=0.02)
        show_charts(active, cast("Charts", screen), clock, LockHolders(plant.store, active))
        await other.teach("linear", LINEAR)
        await other.teach("another", linear(action("c", "first"), action("d", "last")))
        await other.order(Cause.STORE_AND_START, order("J1", "linear"))
        await wait_until(lambda: "a" in tool.received())
        await active.look()
        await other.ask(Cause.ABORT, "J1")
        await other.ask(Cause.CLEAR, "J1")
        await other.order(Cause.STORE_AND_START, order("J1", "another"))
        await wait_until(lambda: "c" in tool.received())
        await other.answer(tool.commands[-1])
        await wait_until(lambda: "d" in tool.received())
        await active.look()
    assert screen.hidden == ["J1"]
    assert screen.shown[SCOPE, "J1"]().actions.keys() == {"c@first", "d@last"}


async def test_last_view_of_a_failed_run_contains_the_reason(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as plant, plant.at_work():
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.received() == ["a"])
        loaded = await plant.runs.get("J1")
        assert loaded
        await plant.answer(tool.commands[0], error="no torque")
        await plant.until_state("J1", JobState.ABORTED)
        ended = await plant.runs.load("J1")
        assert ended
        drawn = view(ended, clock())
        assert (drawn.state, "no torque" in drawn.error) == ("failed", True)
        assert drawn.actions["a@one"].error


async def test_unreadable_run_does_not_hide_other_runs(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as first, first.at_work():
        await first.teach("linear", LINEAR)
        for job_id in ("J1", "J2"):
            await first.order(Cause.STORE_AND_START, order(job_id))
        await wait_until(lambda: tool.received() == ["a", "a"])
        await first.store.execute("HSET", first.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as second, showing(second, screen):
        await wait_until(lambda: screen.shown.keys() == {(SCOPE, "J2")})


async def test_a_run_that_waits_for_a_lock_names_its_holder(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    screen = Screen()
    recipe = linear(action("a", "first"), action("b", "last"))
    for step in cast("list[dict[str, object]]", recipe["steps"]):
        step["lock"] = ["wrench"]
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="edge") as plant, showing(plant, screen):
        await plant.teach("locked", recipe)
        for job in ("J1", "J2"):
            await plant.order(Cause.STORE_AND_START, order(job, "locked"))
            await plant.drive()
        await wait_until(lambda: "held by job J1 (step first)" in "".join(screen.shown[SCOPE, "J2"]().waiting))
