"""Past jobs show what a draft would have done, which values its conditions had, and which names there are."""

from typing import Any

import pytest

from edge.config import Settings
from edge.features.recipes.past_jobs import condition_values, newest_runs, offered_names, replay_runs
from edge.foundation.errors import Refused
from edge.model.job_state import Cause, has_ended
from edge.model.recipe import parse_recipe
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.station.stored_job import NotRecorded
from edge.store.client import Store
from tests.sfc.recipes import action, recipe, transition
from tests.station.plant import PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order

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


def net_of(data: dict[str, Any]) -> Net:
    net = compile_recipe(data)
    assert isinstance(net, Net)
    return net


async def ran(store: Store, *torques: float) -> None:
    """Run a job for each torque that the tool reports."""
    tool, clock = FakeEquipment(), Clock()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("WM", FIT)
    for number, torque in enumerate(torques):
        clock.now += 1000
        await plant.order(Cause.STORE_AND_START, order(f"J{number}", "WM"))
        await plant.drive()
        await plant.answer(tool.commands[-1], {"torque": torque, "bolts": [{"angle": 30}]})
        await plant.drive()
        assert has_ended((await plant.job(f"J{number}")).status)


async def test_draft_shows_the_first_decision_that_differs(store: Store) -> None:
    await ran(store, 82, 90)
    runs = await newest_runs(store, Settings(), SCOPE, "WM", 100)
    assert [job_id for job_id, _ in runs] == ["J1", "J0"]
    assert (await replay_runs(runs, net_of(FIT))).same == 2
    result = await replay_runs(runs, net_of(stricter(85)))
    assert (result.same, result.different, result.not_replayed) == (1, 1, 0)
    (job,) = [item for item in result.jobs if item.differences]
    assert job.first is not None
    assert (job.job_order_id, job.first.number) == ("J0", 2)
    assert (job.first.recorded.entered, job.first.replayed and job.first.replayed.entered) == (
        ("Done",),
        ("Rework", "Done"),
    )


async def test_draft_with_other_steps_and_actions_is_replayed(store: Store) -> None:
    await ran(store, 82)
    runs = await newest_runs(store, Settings(), SCOPE, "WM", 100)
    other = recipe("X Y", [transition("X", "Y", "actions.b.done")], [action("b", "X", type_id=TIGHTEN)])
    assert (await replay_runs(runs, net_of(other))).different == 1


async def test_newest_jobs_come_first_and_others_are_left_out(store: Store) -> None:
    await ran(store, 82, 83, 84)
    assert [job_id for job_id, _ in await newest_runs(store, Settings(), SCOPE, "WM", 2)] == ["J2", "J1"]
    assert await newest_runs(store, Settings(), SCOPE, "OTHER", 2) == []


async def test_condition_has_the_value_that_it_had_in_each_job(store: Store) -> None:
    await ran(store, 82, 90)
    runs = await newest_runs(store, Settings(), SCOPE, "WM", 10)
    values = (await condition_values(runs, "actions.a.result.torque < 85", "A")).values
    assert [(item.job_order_id, item.value) for item in values] == [("J1", "false"), ("J0", "true")]
    assert "90" in str(values[0].unmet)
    never = (await condition_values(runs, "true", "Rework")).values
    assert [item.value for item in never] == ["", ""]
    unknown = (await condition_values(runs, "weight > 5", "A")).values
    assert {item.value for item in unknown} == {"unknown"}


async def test_condition_that_cannot_be_read_is_refused(store: Store) -> None:
    await ran(store, 82)
    runs = await newest_runs(store, Settings(), SCOPE, "WM", 10)
    with pytest.raises(Refused, match="the condition cannot be read: "):
        await condition_values(runs, "actions.a.result.torque <", "A")


async def test_names_are_those_of_the_recipe_and_of_past_results(store: Store) -> None:
    await ran(store, 82, 90)
    runs = await newest_runs(store, Settings(), SCOPE, "WM", 10)
    draft, _ = parse_recipe(FIT)
    assert draft is not None
    names = {item.name: item for item in offered_names(draft, runs, ["vin"], ["carriers"]).names}
    assert names["actions.a.result.torque"].seen == ("90", "82")
    assert names["actions.a.result.bolts[0].angle"].kind == "result"
    assert {"actions.a.done", "steps.Rework.count", "vin", "job.parameters.vin", "mirrors.carriers"} <= names.keys()
    assert offered_names(draft, [("J9", NotRecorded("gone"))], (), ()).names
