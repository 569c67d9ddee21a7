"""What OPC UA clients are shown of runs: those that run already, each move, and the end."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest

from edge.config import RedisSettings
from edge.links.background import beside
from edge.model.job_state import Cause, JobState
from edge.station.decision import Held
from edge.station.runs import Runs
from edge.store.client import Store
from edge.store.opening import open_store
from edge.store.runs import revisions
from edge.uaserver.chart_feed import RunCharts, picture, show_charts
from edge.uaserver.charts import Charts
from edge.uaserver.picture import ActionPicture, ChartPicture, StepPicture
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
    """Stands where the charts of the OPC UA server are: holds what it is told to show."""

    def __init__(self) -> None:
        self.shown: dict[tuple[str, str], Callable[[], ChartPicture]] = {}
        self.hidden: list[str] = []

    def show(self, scope: str, job_order_id: str, look: Callable[[], ChartPicture]) -> None:
        self.shown[scope, job_order_id] = look

    def hide(self, scope: str, job_order_id: str) -> None:
        self.shown.pop((scope, job_order_id), None)
        self.hidden.append(job_order_id)


def showing(plant: Plant, screen: Screen) -> AbstractAsyncContextManager[None]:
    return beside(show_charts(plant.store, plant.runs, cast("Charts", screen), (SCOPE,), round_s=0.02), "charts")


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
        await wait_until(lambda: tool.told() == ["a"])
        clock.now += 1500
        drawn = screen.shown[SCOPE, "J1"]()
        assert (drawn.recipe, drawn.state, drawn.started_at, drawn.error) == ("linear", "running", NOW, "")
        assert drawn.steps == {"one": StepPicture(active=True, elapsed_ms=1500, count=1), "two": StepPicture()}
        assert drawn.actions == {"a@one": ActionPicture("dispatched", 1), "b@two": ActionPicture("pending")}
        assert drawn.waiting == (
            "one → two [always] waits for steps.one.done: a is dispatched",
            "action a of one is dispatched, for 1.5 s",
        )
        await plant.answer(tool.commands[0], {"torque": 85.2})
        await wait_until(lambda: tool.told() == ["a", "b"])
        drawn = screen.shown[SCOPE, "J1"]()
        assert drawn.steps["two"].active
        assert drawn.actions["a@one"] == ActionPicture("completed", 1, {"torque": 85.2})
        await plant.ask(Cause.PAUSE, "J1")
        assert screen.shown[SCOPE, "J1"]().state == "paused"
        await plant.ask(Cause.RESUME, "J1")
        await plant.answer(tool.commands[-1])
        await plant.until_state("J1", JobState.ENDED)
        await wait_until(lambda: screen.shown == {})


async def test_runs_that_another_process_left_are_shown_at_the_start(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as first, first.at_work():
        await first.teach("linear", LINEAR)
        await first.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.told() == ["a"])
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as second, showing(second, screen):
        await wait_until(lambda: screen.shown)
        assert screen.shown[SCOPE, "J1"]().actions["a@one"].state == "dispatched"
        tool.replies = obliging
        async with second.at_work():
            await second.ask(Cause.ABORT, "J1")
            await wait_until(lambda: screen.shown == {})


async def test_a_run_that_another_instance_moves_is_shown_as_it_stands_there(
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
        await wait_until(lambda: tool.told() == ["a"])
        await other.answer(tool.commands[0])
        await wait_until(lambda: screen.shown[SCOPE, "J1"]().steps["two"].active)
        await other.answer(tool.commands[1])
        await wait_until(lambda: screen.shown == {})


class Noting(Runs):
    """Notes which runs were read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, clock, keep_ended_ms=60_000)
        self.read: list[str] = []

    async def load(self, job_id: str) -> Held | None:
        self.read.append(job_id)
        return await super().load(job_id)


@pytest.mark.parametrize(("scope", "readings"), [(SCOPE, ["J1", "J1"]), ("station-9", ["J1"])])
async def test_a_run_is_read_when_it_was_moved_and_only_if_it_is_shown(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil, scope: str, readings: list[str]
) -> None:
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as other, other.at_work():
        await other.teach("linear", LINEAR)
        await other.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.told() == ["a"])
        async with open_store(redis, "edge-2") as store:
            runs = Noting(store, clock)
            charts = RunCharts(store, runs, cast("Charts", screen), (scope,))
            await charts.catch_up(0)
            before = await revisions(store)
            await other.answer(tool.commands[0])
            await wait_until(lambda: tool.told() == ["a", "b"])
            assert await revisions(store) != before
            for _ in range(3):
                await charts.catch_up(0)
            assert runs.read == readings
    assert set(screen.shown) == {(SCOPE, "J1")} & {(scope, "J1")}


async def test_a_job_that_was_stored_anew_with_another_recipe_has_another_chart(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    screen = Screen()
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        instance(redis, {}, clock, consumer="edge") as plant,
        other.at_work(),
    ):
        charts = RunCharts(plant.store, plant.runs, cast("Charts", screen), (SCOPE,))
        await other.teach("linear", LINEAR)
        await other.teach("another", linear(action("c", "first"), action("d", "last")))
        await other.order(Cause.STORE_AND_START, order("J1", "linear"))
        await wait_until(lambda: "a" in tool.told())
        await charts.catch_up(0)
        await other.ask(Cause.ABORT, "J1")
        await other.ask(Cause.CLEAR, "J1")
        await other.order(Cause.STORE_AND_START, order("J1", "another"))
        await wait_until(lambda: "c" in tool.told())
        await other.answer(tool.commands[-1])
        await wait_until(lambda: "d" in tool.told())
        await charts.catch_up(0)
    assert screen.hidden == ["J1"]
    assert screen.shown[SCOPE, "J1"]().actions.keys() == {"c@first", "d@last"}


async def test_a_failed_run_says_why_in_its_last_picture(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as plant, plant.at_work():
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await wait_until(lambda: tool.told() == ["a"])
        held = await plant.runs.held("J1")
        assert held
        await plant.answer(tool.commands[0], error="no torque")
        await plant.until_state("J1", JobState.ABORTED)
        ended = await plant.runs.load("J1")
        assert ended
        drawn = picture(ended, clock())
        assert (drawn.state, "no torque" in drawn.error) == ("failed", True)
        assert drawn.actions["a@one"].error


async def test_a_run_that_nobody_can_read_hides_no_other(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, wait_until: WaitUntil
) -> None:
    async with instance(redis, {TIGHTEN: tool}, clock) as first, first.at_work():
        await first.teach("linear", LINEAR)
        for job_id in ("J1", "J2"):
            await first.order(Cause.STORE_AND_START, order(job_id))
        await wait_until(lambda: tool.told() == ["a", "a"])
        await first.store.execute("HSET", first.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    screen = Screen()
    async with instance(redis, {TIGHTEN: tool}, clock) as second, showing(second, screen):
        await wait_until(lambda: screen.shown.keys() == {(SCOPE, "J2")})
