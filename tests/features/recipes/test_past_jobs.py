"""Past jobs show what a draft would have done, which values its conditions had, and which names there are."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from edge.app.recipe_process import RecipeProcess
from edge.config import Settings
from edge.features.recipes.drafts import RecipeDraft
from edge.features.recipes.past_jobs import PastJobs
from edge.features.recipes.service import ask_apart
from edge.features.recipes.workbench import ask_here
from edge.features.recipes.workbench_requests import Request, text_of
from edge.foundation.errors import Refused
from edge.model.job_state import Cause, has_ended
from edge.store.client import Store
from tests.features.recipes.desks import ANNA, desk_on
from tests.sfc.recipes import action, chain, recipe, transition
from tests.station.plant import PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order

WORKBENCH = "edge.features.recipes.workbench"
FIT = recipe(
    "A Rework Done",
    [
        transition("A", "Rework", "actions.a.result.torque < 80", priority=1),
        transition("A", "Done", "actions.a.done", priority=2),
        transition("Rework", "Done", "always"),
    ],
    [action("a", "A", type_id=TIGHTEN)],
)


def stricter(bound: int) -> dict[str, Any]:
    """Return the recipe with another bound of the torque."""
    changed: dict[str, Any] = {**FIT, "transitions": [{**item} for item in FIT["transitions"]]}
    changed["transitions"][0]["condition"] = f"actions.a.result.torque < {bound}"
    return changed


async def draft_of(store: Store, data: dict[str, Any]) -> RecipeDraft:
    return await desk_on(store).create(SCOPE, "WM", ANNA, text_of(data))


async def ran(
    store: Store, *torques: float, of: dict[str, Any] = FIT, names: Sequence[str] = (), begin: int = 0
) -> None:
    """Run a job for each torque that the tool reports."""
    tool, clock = FakeEquipment(), Clock()
    clock.now += begin
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("WM", of)
    for name, torque in zip(names or [f"J{number}" for number in range(len(torques))], torques, strict=True):
        clock.now += 1000
        await plant.order(Cause.STORE_AND_START, order(name, "WM"))
        await plant.drive()
        await plant.answer(tool.commands[-1], {"torque": torque, "bolts": [{"angle": 30}]})
        await plant.drive()
        assert has_ended((await plant.job(name)).status)


async def test_draft_shows_the_first_decision_that_differs(store: Store) -> None:
    await ran(store, 82, 90)
    desk = desk_on(store)
    same = await desk.replay(SCOPE, "WM", text_of(FIT), "en")
    assert ([job.job_order_id for job in same.jobs], same.same, same.next) == (["J1", "J0"], 2, None)
    result = await desk.replay(SCOPE, "WM", text_of(stricter(85)), "en")
    assert (result.same, result.different, result.not_replayed) == (1, 1, 0)
    (job,) = [item for item in result.jobs if item.differences]
    assert job.first is not None
    assert (job.job_order_id, job.first.number) == ("J0", 2)
    assert (job.first.recorded.entered, job.first.replayed and job.first.replayed.entered) == (
        ("Done",),
        ("Rework", "Done"),
    )
    assert (job.first.then, job.first.now) == (
        "a completed, leaves A, enters Done",
        "a completed, leaves A, leaves Rework, enters Rework, enters Done",
    )


async def test_replay_comes_in_portions(store: Store) -> None:
    await ran(store, 82, 90, 91)
    desk = desk_on(store)
    first = await desk.replay(SCOPE, "WM", text_of(FIT), "en", within_s=0)
    assert ([job.job_order_id for job in first.jobs], first.total) == (["J2"], 3)
    rest = await desk.replay(SCOPE, "WM", text_of(FIT), "en", after=first.next or "")
    assert ([job.job_order_id for job in rest.jobs], rest.total, rest.next) == (["J1", "J0"], 3, None)
    with pytest.raises(Refused, match="'x' is not a place in a replay"):
        await desk.replay(SCOPE, "WM", text_of(FIT), "en", after="x")


async def test_job_that_starts_between_two_portions_moves_no_other(store: Store) -> None:
    """An offset into a list that begins with the newest job counted one twice, and lost the oldest."""
    await ran(store, 82, 90, 91)
    desk = desk_on(store)
    first = await desk.replay(SCOPE, "WM", text_of(FIT), "en", within_s=0)
    await ran(store, 70, names=("LATE",), begin=100_000)
    rest = await desk.replay(SCOPE, "WM", text_of(FIT), "en", after=first.next or "")
    assert ([job.job_order_id for job in rest.jobs], rest.total) == (["J1", "J0"], 3)


async def test_stored_jobs_are_not_read_again_within_ten_seconds(store: Store) -> None:
    """The editor read two fields of each stored job after every change."""
    await ran(store, 82, 90, 91)
    now = [0.0]
    past = PastJobs(store, Settings(), lambda: now[0])

    async def reads() -> int:
        stats = (await store.execute("INFO", "commandstats"))["cmdstat_hmget"]
        return int(stats.partition("calls=")[2].partition(",")[0])

    before = await reads()
    for now[0] in (0, 1, 5, 9.9):
        assert [job.job_id for job in await past.newest(SCOPE, "WM", 10)] == ["J2", "J1", "J0"]
        assert await past.newest(SCOPE, "OTHER", 10) == []
    assert await reads() == before + 3
    await ran(store, 70, names=("LATE",), begin=100_000)
    began = await reads()
    now[0] = 10
    assert [job.job_id for job in await past.newest(SCOPE, "WM", 1)] == ["LATE"]
    assert await reads() == began + 4


async def test_orders_of_started_jobs_are_read_once(store: Store) -> None:
    await ran(store, 82, 90, 91)
    now = [0.0]
    past = PastJobs(store, Settings(), lambda: now[0])
    sent = []
    for now[0] in (0, 10, 20):
        sent.append(int((await store.execute("INFO", "stats"))["total_net_output_bytes"]))
        jobs = await past.newest(SCOPE, "WM", 10)
        assert [job.job_id for job in jobs] == ["J2", "J1", "J0"]
    sent.append(int((await store.execute("INFO", "stats"))["total_net_output_bytes"]))
    first, second = sent[1] - sent[0], sent[2] - sent[1]
    assert second < first - 100


async def test_draft_with_other_steps_and_actions_is_replayed(store: Store) -> None:
    await ran(store, 82)
    other = recipe("X Y", [transition("X", "Y", "actions.b.done")], [action("b", "X", type_id=TIGHTEN)])
    assert (await desk_on(store).replay(SCOPE, "WM", text_of(other), "en")).different == 1


async def test_draft_that_cannot_run_is_not_replayed(store: Store) -> None:
    await ran(store, 82)
    with pytest.raises(Refused, match="exactly one step must be initial"):
        await desk_on(store).replay(SCOPE, "WM", '{"steps": []}', "en")


async def test_newest_jobs_come_first_and_others_are_left_out(store: Store) -> None:
    await ran(store, 82, 83, 84)
    assert [job.job_id for job in await PastJobs(store, Settings()).newest(SCOPE, "WM", 2)] == ["J2", "J1"]
    assert await PastJobs(store, Settings()).newest(SCOPE, "OTHER", 2) == []


async def test_replay_of_a_large_job_does_not_hold_the_gateway(store: Store) -> None:
    """Its decisions are repeated in another process; without it the loop would stand for their time."""
    large = chain(" ".join(f"S{number}" for number in range(300)), action("a", "S0", type_id=TIGHTEN))
    await ran(store, 82, of=large)
    edits, past = RecipeProcess(WORKBENCH), RecipeProcess(WORKBENCH)
    desk = desk_on(store, ask=ask_apart(edits, past))
    try:
        replay = asyncio.create_task(desk.replay(SCOPE, "WM", text_of(large), "en"))
        held, before = 0.0, time.thread_time()
        while not replay.done():
            await store.execute("PING")
            held, before = max(held, time.thread_time() - before), time.thread_time()
        assert (await replay).same == 1
        assert held < 0.02, f"the loop was held for {held:.3f} s"
    finally:
        await edits.close()
        await past.close()


async def test_edit_does_not_wait_for_a_replay(store: Store) -> None:
    await ran(store, 82)
    edits, past = RecipeProcess(WORKBENCH), RecipeProcess(WORKBENCH)
    desk = desk_on(store, ask=ask_apart(edits, past))
    try:
        await desk.replay(SCOPE, "WM", text_of(FIT), "en")
        draft = await desk.create(SCOPE, "WM", ANNA, text_of(FIT))
        assert edits.pid is not None
        assert edits.pid != past.pid
        assert (await desk.view(draft)).problems == ()
    finally:
        await edits.close()
        await past.close()


async def test_condition_has_the_value_that_it_had_in_each_job(store: Store) -> None:
    await ran(store, 82, 90)
    desk, draft = desk_on(store), await draft_of(store, FIT)
    values = (await desk.condition(draft, "actions.a.result.torque < 85", "A")).values
    assert [(item.job_order_id, item.value) for item in values] == [("J1", "false"), ("J0", "true")]
    assert "90" in str(values[0].unmet)
    never = (await desk.condition(draft, "true", "Rework")).values
    assert [item.value for item in never] == ["", ""]
    unknown = (await desk.condition(draft, "weight > 5", "A")).values
    assert {item.value for item in unknown} == {"unknown"}


async def test_condition_that_cannot_be_read_is_refused(store: Store) -> None:
    await ran(store, 82)
    with pytest.raises(Refused, match="the condition cannot be read: "):
        await desk_on(store).condition(await draft_of(store, FIT), "actions.a.result.torque <", "A")


async def test_names_are_those_of_the_recipe_and_of_past_results(store: Store) -> None:
    await ran(store, 82, 90)
    names = {item.name: item for item in (await desk_on(store).names(await draft_of(store, FIT))).names}
    assert names["actions.a.result.torque"].seen == ("90", "82")
    assert names["actions.a.result.bolts[0].angle"].kind == "result"
    assert {"actions.a.done", "steps.Rework.count", "job.id"} <= names.keys()


async def test_names_do_not_read_the_same_jobs_again(store: Store) -> None:
    """The documents of the ten newest jobs were read after each change in the editor."""
    await ran(store, 82, 90)
    asked: list[str] = []

    async def ask(request: Request, answer: type[Any]) -> Any:
        asked.append(type(request).__name__)
        return await ask_here(request, answer)

    desk, draft = desk_on(store, ask=ask), await draft_of(store, FIT)
    first, second = await desk.names(draft), await desk.names(draft)
    assert first == second
    assert asked == ["NameJob", "NameJob", "OfferNames", "OfferNames"]
